#!/usr/bin/env python3
"""Makes the pictures in this folder. `pip install pillow==12.0.0`, then `python3 make.py`; see README.md."""

import random
from pathlib import Path

from PIL import Image, ImageOps

HERE = Path(__file__).parent
FILL = (127, 127, 127)


def noise(width: int, height: int, seed: int) -> Image.Image:
    """A gradient under noise, with hard edges: overshoot and clipping both happen."""
    numbers = random.Random(seed)
    picture = Image.new("RGB", (width, height))
    for y in range(height):
        for x in range(width):
            edge = 255 if (x // 7 + y // 5) % 3 == 0 else 0
            picture.putpixel((x, y), (x * 255 // width, (y * 255 // height + numbers.randrange(60)) % 256, edge))
    return picture


def main() -> None:
    pictures = {
        "source": noise(97, 61, 1),
        "tall": noise(21, 80, 2),
        "dot": noise(1, 1, 3),
    }
    for name, picture in pictures.items():
        picture.save(HERE / f"{name}.png", optimize=True)
    for size in [(64, 64), (150, 40), (97, 20), (12, 61), (1, 1)]:
        pictures["source"].resize(size).save(HERE / f"resize-{size[0]}x{size[1]}.png", optimize=True)
    for name, side in [("source", 48), ("source", 128), ("tall", 47), ("dot", 16)]:
        padded = ImageOps.pad(pictures[name], (side, side), color=FILL)
        padded.save(HERE / f"{name}-pad-{side}.png", optimize=True)

    small = noise(3, 2, 5)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        small.save(HERE / f"orientation-{orientation}.png", exif=exif)
        with Image.open(HERE / f"orientation-{orientation}.png") as saved:
            ImageOps.exif_transpose(saved).convert("RGB").save(HERE / f"upright-{orientation}.png", exif=b"")

    modes = {
        "grey": small.convert("L"),
        "palette": small.convert("P", palette=Image.Palette.ADAPTIVE, colors=6),
        "transparent": Image.merge("RGBA", (*small.split(), Image.linear_gradient("L").resize(small.size))),
        "bilevel": small.convert("1"),
    }
    for name, picture in modes.items():
        picture.save(HERE / f"mode-{name}.png")
        picture.convert("RGB").save(HERE / f"mode-{name}-rgb.png")


if __name__ == "__main__":
    main()
