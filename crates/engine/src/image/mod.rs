//! From the bytes of an image file to what the vision towers take, as the published DeepSeek-OCR does it.
//!
//! Decoding, orientation, the crop grid, tiles, the padded global view and normalisation are here. Which files there
//! are, and reading them, is left to the caller; where their tokens stand in the prompt is left to `prompt`.

mod crop_grid;
mod decode;
mod decoder;
mod format;
mod jpeg;
mod orientation;
mod resample;
mod rgb_image;
mod thumbnail;

pub use crop_grid::crop_grid;
pub use decode::{decode, measure};
pub use rgb_image::{Page, RgbImage};
pub use thumbnail::thumbnail;

use crate::{ImageBatch, PageImages};
use resample::resize;

/// Colour around a page that is not square: the mean that normalisation subtracts, in whole levels.
const FILL: u8 = 127;

/// Up to this side the published code without tiles stretches the page to the square; above, it pads.
const LARGEST_STRETCHED: u64 = 640;

/// How a page is cut and scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageSettings {
    /// Side of the padded global view, in pixels.
    pub base_size: u64,
    /// Side of one tile, in pixels; of the only view without `crop_mode`.
    pub image_size: u64,
    /// Whether large pages are also cut into tiles.
    pub crop_mode: bool,
    /// Fewest tiles of one page.
    pub min_tiles: u64,
    /// Most tiles of one page.
    pub max_tiles: u64,
}

impl Default for ImageSettings {
    /// The published ones.
    fn default() -> Self {
        Self { base_size: 1024, image_size: 640, crop_mode: true, min_tiles: 2, max_tiles: 9 }
    }
}

/// Scales, cuts and normalises a page.
pub fn prepare(image: &RgbImage, settings: &ImageSettings) -> PageImages {
    let tile = settings.image_size as usize;
    if !settings.crop_mode {
        let view = if settings.image_size <= LARGEST_STRETCHED { resize(image, tile, tile) } else { pad(image, tile) };
        return PageImages { global: normalise(&[view], tile), tiles: None, crop_grid: [1, 1] };
    }
    let base = settings.base_size as usize;
    let grid = crop_grid(image.page(), settings);
    let tiles = (grid != [1, 1]).then(|| normalise(&cut(image, tile, grid), tile));
    PageImages { global: normalise(&[pad(image, base)], base), tiles, crop_grid: grid }
}

/// Stretches the page over the grid and cuts it, row by row.
fn cut(image: &RgbImage, side: usize, [wide, high]: [u64; 2]) -> Vec<RgbImage> {
    let (wide, high) = (wide as usize, high as usize);
    let stretched = resize(image, wide * side, high * side);
    let tiles = (0..high).flat_map(|down| (0..wide).map(move |across| (across, down)));
    tiles.map(|(across, down)| stretched.window(across * side, down * side, side, side)).collect()
}

/// Scales the page to fit a square, and fills what is left around it.
fn pad(image: &RgbImage, side: usize) -> RgbImage {
    let (width, height) = (image.width() as f64, image.height() as f64);
    // Rounded half to even, as Python does. A page so thin that nothing is left of it gives an empty square.
    let scaled = |short: f64, long: f64| (short / long * side as f64).round_ties_even() as usize;
    let (inner_width, inner_height) = if width > height {
        (side, scaled(height, width))
    } else {
        (if width == height { side } else { scaled(width, height) }, side)
    };
    let offset = |inner: usize| ((side - inner) as f64 * 0.5).round_ties_even() as usize;
    let mut padded = RgbImage::filled(side, side, FILL);
    padded.paste(&resize(image, inner_width, inner_height), offset(inner_width), offset(inner_height));
    padded
}

/// Levels to numbers around zero, channels first: `(level / 255 - 0.5) / 0.5`.
fn normalise(images: &[RgbImage], side: usize) -> ImageBatch {
    let numbers: [f32; 256] = std::array::from_fn(|level| (level as f32 / 255.0 - 0.5) / 0.5);
    let mut pixels = Vec::with_capacity(images.len() * 3 * side * side);
    for image in images {
        for channel in 0..3 {
            pixels.extend(image.levels().iter().skip(channel).step_by(3).map(|level| numbers[usize::from(*level)]));
        }
    }
    ImageBatch { count: images.len(), side, pixels }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> RgbImage {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pillow").join(name);
        decode(name, &std::fs::read(path).unwrap()).unwrap()
    }

    fn furthest(ours: &RgbImage, theirs: &RgbImage) -> u8 {
        assert_eq!(ours.page(), theirs.page());
        ours.levels().iter().zip(theirs.levels()).map(|(ours, theirs)| ours.abs_diff(*theirs)).max().unwrap()
    }

    #[test]
    fn resizing_gives_the_levels_of_pillow() {
        let source = fixture("source.png");
        for (width, height) in [(64, 64), (150, 40), (97, 20), (12, 61), (1, 1)] {
            let ours = resize(&source, width, height);
            assert_eq!(furthest(&ours, &fixture(&format!("resize-{width}x{height}.png"))), 0, "{width}x{height}");
        }
    }

    #[test]
    fn padding_gives_the_levels_of_pillow() {
        for (name, side) in [("source", 48), ("source", 128), ("tall", 47), ("dot", 16)] {
            let ours = pad(&fixture(&format!("{name}.png")), side);
            assert_eq!(furthest(&ours, &fixture(&format!("{name}-pad-{side}.png"))), 0, "{name} to {side}");
        }
    }

    #[test]
    fn nothing_but_the_fill_is_left_of_a_thread() {
        // 200 x 1 pixels in a square of 32: a height of 0.16 rounds to none.
        assert_eq!(pad(&RgbImage::filled(200, 1, 255), 32), RgbImage::filled(32, 32, FILL));
    }

    #[test]
    fn tiles_are_cut_row_by_row() {
        // Four quarters of one colour each: every tile of a 2 x 2 grid is flat, in reading order.
        let mut quarters = RgbImage::filled(200, 200, 0);
        for (index, level) in [10, 20, 30, 40].into_iter().enumerate() {
            quarters.paste(&RgbImage::filled(100, 100, level), index % 2 * 100, index / 2 * 100);
        }
        let tiles = cut(&quarters, 100, [2, 2]);
        let levels: Vec<u8> = tiles.iter().map(|tile| tile.levels()[0]).collect();
        assert_eq!(levels, [10, 20, 30, 40]);
        assert!(tiles.iter().all(|tile| tile.levels().iter().all(|level| *level == tile.levels()[0])));
    }

    #[test]
    fn normalisation_is_channels_first_around_zero() {
        let mut image = RgbImage::filled(2, 1, 0);
        image.paste(&RgbImage::filled(1, 1, 255), 1, 0);
        let images = normalise(&[image], 1);
        assert_eq!(images.pixels, [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
    }

    #[test]
    fn sides_of_what_is_prepared_follow_the_settings() {
        let settings = ImageSettings { base_size: 64, image_size: 32, ..ImageSettings::default() };
        let page = prepare(&RgbImage::filled(60, 90, 200), &settings);
        assert_eq!(page.crop_grid, [2, 3]);
        assert_eq!((page.global.count, page.global.side, page.global.pixels.len()), (1, 64, 3 * 64 * 64));
        let tiles = page.tiles.unwrap();
        assert_eq!((tiles.count, tiles.side, tiles.pixels.len()), (6, 32, 6 * 3 * 32 * 32));
    }

    #[test]
    fn without_crop_mode_there_is_one_view_of_the_tile_size() {
        let stretched = ImageSettings { crop_mode: false, image_size: 32, ..ImageSettings::default() };
        let page = prepare(&RgbImage::filled(60, 90, 200), &stretched);
        assert_eq!((page.crop_grid, page.tiles, page.global.side), ([1, 1], None, 32));
        let flat = page.global.pixels[0];
        assert!(page.global.pixels.iter().all(|number| *number == flat), "stretched: nothing is filled");

        let padded = ImageSettings { crop_mode: false, image_size: 704, ..ImageSettings::default() };
        let page = prepare(&RgbImage::filled(60, 90, 200), &padded);
        assert_eq!(page.global.side, 704);
        assert!((page.global.pixels[0] - (127.0 / 255.0 - 0.5) / 0.5).abs() < 1e-6, "padded: the corner is filled");
    }

    #[test]
    fn one_pixel_becomes_a_whole_page() {
        let settings = ImageSettings { base_size: 64, image_size: 32, ..ImageSettings::default() };
        let page = prepare(&RgbImage::filled(1, 1, 255), &settings);
        assert_eq!((page.crop_grid, page.tiles), ([1, 1], None));
        assert!(page.global.pixels.iter().all(|number| *number == 1.0));
    }
}
