#!/usr/bin/env python3
"""Makes the page images that ship with the project, and their manifest, in assets/pages.

`pip install pillow==12.0.0`, the DejaVu fonts (Debian: fonts-dejavu), then `python3 benches/make_pages.py`. Every word,
number and picture is made up here from a seed, so the same versions give the same files.
"""

import hashlib
import math
import random
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter, ImageFont

FOLDER = Path(__file__).parent.parent / "assets" / "pages"
FONTS = Path("/usr/share/fonts/truetype/dejavu")
INK, GREY, PAPER = (24, 24, 28), (120, 124, 130), (255, 255, 255)
COLOURS = [(38, 92, 160), (214, 112, 38), (62, 140, 84), (170, 52, 70), (120, 90, 160), (200, 170, 50)]
ORIENTATION_TAG = 0x0112

SUBJECTS = "the harbour|a quiet valley|the printing house|our survey|the third season|a small laboratory|the evening train|the council".split("|")
VERBS = "keeps|measures|describes|carries|records|repairs|compares|remembers".split("|")
OBJECTS = "the weight of water|every second page|a list of names|two kinds of paper|the length of a shadow|the price of salt|old maps|its own mistakes".split("|")
ENDS = "in spring|without hurry|for the record|as agreed|before noon|on both sides|with great care|once a year".split("|")


def font(size: int, style: str = "Sans") -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(FONTS / f"DejaVu{style}.ttf", size)


class Sheet:
    """A page being drawn."""

    def __init__(self, width: int, height: int, seed: int, paper=PAPER) -> None:
        self.picture = Image.new("RGB", (width, height), paper)
        self.draw = ImageDraw.Draw(self.picture)
        self.width, self.height = width, height
        self.numbers = random.Random(seed)

    def sentence(self) -> str:
        words = " ".join(self.numbers.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, ENDS))
        if self.numbers.random() < 0.3:
            words += f", {self.numbers.randrange(2, 98)} times"
        return words[0].upper() + words[1:] + "."

    def text(self, left: int, top: int, words: str, size: int, style: str = "Sans", fill=INK) -> None:
        self.draw.text((left, top), words, font=font(size, style), fill=fill)

    def column(self, left: int, top: int, width: int, bottom: int, size: int, style: str = "Serif") -> None:
        """Paragraphs down to `bottom`."""
        face = font(size, style)
        step = round(size * 1.4)
        while top + step <= bottom:
            words = " ".join(self.sentence() for _ in range(self.numbers.randrange(3, 7))).split()
            while words and top + step <= bottom:
                line = words.pop(0)
                while words and face.getlength(f"{line} {words[0]}") <= width:
                    line += " " + words.pop(0)
                self.draw.text((left, top), line, font=face, fill=INK)
                top += step
            top += step // 2

    def table(self, left: int, top: int, widths: list[int], rows: int, size: int) -> int:
        """A ruled table with a header; gives back where it ends."""
        step = size * 2
        right = left + sum(widths)
        for row in range(rows + 1):
            x = left
            for index, width in enumerate(widths):
                if row == 0:
                    words, style = ["item", "count", "share", "change", "note"][index % 5], "Sans-Bold"
                elif index == 0:
                    words, style = self.numbers.choice(OBJECTS).split()[-1], "Sans"
                else:
                    words, style = f"{self.numbers.uniform(0, 900):.1f}", "SansMono"
                self.text(x + 8, top + size // 2, words, size, style)
                x += width
            self.draw.line((left, top + step, right, top + step), fill=GREY if row else INK, width=1 if row else 2)
            top += step
        return top

    def bars(self, box: tuple[int, int, int, int], count: int) -> None:
        left, top, right, bottom = box
        self.draw.line((left, top, left, bottom, right, bottom), fill=INK, width=2)
        step = (right - left) / count
        for index in range(count):
            height = (bottom - top) * self.numbers.uniform(0.15, 0.95)
            x = left + index * step + step * 0.2
            self.draw.rectangle((x, bottom - height, x + step * 0.6, bottom - 2), fill=COLOURS[index % len(COLOURS)])
            self.text(round(x), bottom + 4, str(index + 1), 14, fill=GREY)

    def lines(self, box: tuple[int, int, int, int], count: int) -> None:
        left, top, right, bottom = box
        self.draw.rectangle(box, outline=GREY)
        for index in range(count):
            phase, tempo = self.numbers.uniform(0, 6), self.numbers.uniform(2, 9)
            points = []
            for step in range(61):
                height = 0.5 + 0.35 * math.sin(phase + tempo * step / 60) + self.numbers.uniform(-0.03, 0.03)
                points.append((left + (right - left) * step / 60, bottom - (bottom - top) * height))
            self.draw.line(points, fill=COLOURS[index % len(COLOURS)], width=3)

    def landscape(self, box: tuple[int, int, int, int]) -> None:
        """A made-up photograph: sky, sun, hills, grain."""
        left, top, right, bottom = box
        width, height = right - left, bottom - top
        scene = Image.new("RGB", (width, height))
        brush = ImageDraw.Draw(scene)
        upper, lower = self.numbers.sample([(32, 60, 120), (230, 150, 90), (150, 190, 220), (90, 60, 110), (244, 214, 150)], 2)
        for y in range(height):
            share = y / height
            brush.line((0, y, width, y), fill=tuple(round(a + (b - a) * share) for a, b in zip(upper, lower)))
        radius, centre = height // 9, (self.numbers.randrange(width), self.numbers.randrange(height // 2))
        brush.ellipse((centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius), fill=(250, 240, 210))
        for layer in range(4):
            shade = tuple(round(channel * (0.8 - 0.17 * layer)) for channel in (70, 100, 90))
            phase, waves = self.numbers.uniform(0, 6), self.numbers.uniform(2, 5)
            hills = [(0, height)]
            for x in range(0, width + 8, 8):
                rise = math.sin(phase + waves * x / width) + 0.35 * math.sin(phase * 2 + 3.1 * waves * x / width)
                hills.append((x, height * (0.52 + 0.12 * layer) - rise * height * 0.07))
            brush.polygon([*hills, (width, height)], fill=shade)
        scene = scene.filter(ImageFilter.GaussianBlur(1))
        grain = Image.frombytes("L", (width // 2 + 1, height // 2 + 1), self.numbers.randbytes((width // 2 + 1) * (height // 2 + 1)))
        grain = grain.resize((width, height)).convert("RGB")
        self.picture.paste(Image.blend(scene, grain, 0.06), (left, top))

    def discs(self, box: tuple[int, int, int, int], count: int) -> None:
        """A made-up drawing: overlapping discs."""
        left, top, right, bottom = box
        for _ in range(count):
            radius = self.numbers.randrange(10, (bottom - top) // 4)
            x = self.numbers.randrange(left + radius, right - radius)
            y = self.numbers.randrange(top + radius, bottom - radius)
            self.draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=self.numbers.choice(COLOURS), outline=PAPER, width=3)


def letter() -> Sheet:
    sheet = Sheet(1240, 1754, 1)
    sheet.text(130, 120, "The Society for Exact Measures", 38, "Serif-Bold")
    sheet.text(130, 180, "14 Granary Lane, third floor", 22, "Serif", GREY)
    sheet.column(130, 290, 980, 1500, 25)
    sheet.text(130, 1580, "With kind regards, the secretary", 25, "Serif")
    return sheet


def paper() -> Sheet:
    sheet = Sheet(850, 1700, 2)
    sheet.text(60, 60, "On the Weight of Water", 34, "Serif-Bold")
    sheet.column(60, 130, 350, 1640, 18)
    sheet.column(440, 130, 350, 1640, 18)
    return sheet


def receipt() -> Sheet:
    sheet = Sheet(480, 1440, 3, (250, 248, 240))
    sheet.text(110, 40, "GRANARY STORE", 30, "SansMono-Bold")
    for row in range(52):
        name = sheet.numbers.choice(OBJECTS).split()[-1]
        sheet.text(30, 110 + row * 24, f"{name:<22}{sheet.numbers.uniform(0.2, 80):>9.2f}", 20, "SansMono")
    sheet.text(30, 1375, f"{'total':<22}{1204.55:>9.2f}", 20, "SansMono-Bold")
    return sheet


def ledger() -> Sheet:
    sheet = Sheet(1600, 1000, 4)
    sheet.text(60, 40, "Ledger of the third season", 30, "Sans-Bold")
    sheet.table(60, 100, [300, 240, 240, 240, 220, 240], 20, 20)
    return sheet


def report() -> Sheet:
    sheet = Sheet(1240, 1600, 5)
    sheet.text(100, 90, "Annual report", 52, "Sans-Bold", COLOURS[0])
    sheet.column(100, 190, 1040, 460, 24, "Sans")
    sheet.bars((120, 510, 1120, 860), 12)
    end = sheet.table(100, 930, [340, 230, 230, 240], 6, 22)
    sheet.column(100, end + 40, 1040, 1520, 24, "Sans")
    return sheet


def form() -> Sheet:
    sheet = Sheet(600, 600, 6)
    sheet.text(40, 30, "Request for instruments", 26, "Sans-Bold")
    for row, label in enumerate(["name", "department", "instrument", "from", "until", "reason"]):
        sheet.text(40, 100 + row * 70, label, 18)
        sheet.draw.rectangle((200, 92 + row * 70, 560, 132 + row * 70), outline=INK, width=2)
        sheet.text(212, 102 + row * 70, sheet.numbers.choice(OBJECTS), 17, "SansMono", COLOURS[0])
    sheet.draw.rectangle((40, 530, 64, 554), outline=INK, width=2)
    sheet.text(78, 532, "I have read the rules", 18)
    return sheet


def slide() -> Sheet:
    sheet = Sheet(1280, 720, 7, (246, 247, 250))
    sheet.draw.rectangle((0, 0, 1280, 110), fill=COLOURS[0])
    sheet.text(50, 28, "Where the hours went", 46, "Sans-Bold", PAPER)
    for row in range(5):
        sheet.draw.ellipse((60, 178 + row * 90, 76, 194 + row * 90), fill=COLOURS[1])
        sheet.text(96, 168 + row * 90, " ".join(sheet.sentence().split()[:5]), 28)
    sheet.lines((700, 170, 1220, 620), 3)
    return sheet


def newspaper() -> Sheet:
    sheet = Sheet(1400, 1400, 8, (247, 243, 232))
    sheet.text(300, 40, "The Valley Observer", 76, "Serif-Bold")
    sheet.draw.line((60, 150, 1340, 150), fill=INK, width=4)
    sheet.landscape((60, 180, 900, 640))
    sheet.column(60, 670, 400, 1340, 30)
    sheet.column(500, 670, 400, 1340, 30)
    sheet.column(940, 180, 400, 1340, 30)
    return sheet


def poster() -> Sheet:
    sheet = Sheet(900, 1350, 20)
    sheet.landscape((0, 0, 900, 1350))
    sheet.text(70, 80, "Open house", 96, "Sans-Bold", PAPER)
    sheet.text(76, 200, "the printing house, in spring", 36, fill=PAPER)
    return sheet


def panorama() -> Sheet:
    sheet = Sheet(2000, 500, 10)
    sheet.landscape((0, 0, 2000, 500))
    sheet.text(1520, 450, "the quiet valley, from the east", 24, fill=PAPER)
    return sheet


def snapshot() -> Sheet:
    sheet = Sheet(800, 1067, 11)
    sheet.landscape((30, 30, 770, 600))
    sheet.discs((30, 630, 770, 980), 40)
    sheet.text(40, 1000, "Two exhibits, photographed upright", 26, "Serif")
    return sheet


def collage() -> Sheet:
    sheet = Sheet(640, 480, 12, (30, 32, 40))
    for index in range(6):
        left, top = 16 + index % 3 * 208, 16 + index // 3 * 216
        sheet.landscape((left, top, left + 192, top + 192))
        sheet.text(left, top + 195, f"plate {index + 1}", 14, fill=PAPER)
    return sheet


# File, category, what is on it, how it is drawn.
PAGES = [
    ("letter.png", "text-heavy", "one column of running text", letter),
    ("paper.png", "text-heavy", "two narrow columns of small text", paper),
    ("receipt.png", "text-heavy", "a long till receipt in fixed pitch", receipt),
    ("ledger.png", "text-heavy", "a wide table of numbers", ledger),
    ("report.png", "mixed-layout", "headings, text, a bar chart and a table", report),
    ("form.png", "mixed-layout", "a filled-in form, no tiles at the published sizes", form),
    ("slide.jpg", "mixed-layout", "a slide: a list beside a line chart", slide),
    ("newspaper.jpg", "mixed-layout", "three columns around a picture", newspaper),
    ("poster.jpg", "image-rich", "a picture with a title over it", poster),
    ("panorama.jpg", "image-rich", "one very wide picture", panorama),
    ("snapshot.jpg", "image-rich", "stored lying on its side, with EXIF orientation 6", snapshot),
    ("collage.jpg", "image-rich", "six small pictures, no tiles at the published sizes", collage),
]


def save(sheet: Sheet, path: Path) -> None:
    if path.suffix == ".png":
        # Few colours: a rendered page has no more, and the file is a third of the size.
        sheet.picture.quantize(24, dither=Image.Dither.NONE).save(path, optimize=True)
        return
    picture, exif = sheet.picture, Image.Exif()
    if path.stem == "snapshot":
        picture = picture.transpose(Image.Transpose.ROTATE_90)
        exif[ORIENTATION_TAG] = 6
    picture.save(path, quality=48, optimize=True, exif=exif)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    manifest = [
        "# Page images made for this project by benches/make_pages.py; no third-party content. Text is set in the DejaVu",
        "# fonts. Width and height are those of the page the right way up.",
        "pages:",
    ]
    for name, category, note, draw in PAGES:
        sheet = draw()
        save(sheet, FOLDER / name)
        content = (FOLDER / name).read_bytes()
        manifest += [
            f"  - file: {name}",
            f"    category: {category}",
            f"    width: {sheet.width}",
            f"    height: {sheet.height}",
            f"    bytes: {len(content)}",
            f"    sha256: {hashlib.sha256(content).hexdigest()}",
            f'    note: "{note}"',
        ]
    (FOLDER / "manifest.yaml").write_text("\n".join(manifest) + "\n")


if __name__ == "__main__":
    main()
