//! How many tiles a page is cut into, across and down.

use super::{ImageSettings, Page};

/// The grid of tiles whose shape is nearest to the page's; `[1, 1]` when there are no tiles.
///
/// A page that fits one tile is not cut. Where two grids are equally near, the later one (more tiles) is taken if the
/// page has more than half the pixels it would be stretched to. Of equally near grids with the same number of tiles the
/// published code takes whichever its set yields last; here they are ordered by width. With 2 to 9 tiles no page
/// tells the difference.
pub fn crop_grid(page: Page, settings: &ImageSettings) -> [u64; 2] {
    let ImageSettings { image_size, crop_mode, min_tiles, max_tiles, .. } = *settings;
    let (width, height) = (u64::from(page.width), u64::from(page.height));
    if !crop_mode || (width <= image_size && height <= image_size) {
        return [1, 1];
    }
    let mut grids: Vec<[u64; 2]> = (1..=max_tiles)
        .flat_map(|wide| (1..=max_tiles / wide).map(move |high| [wide, high]))
        .filter(|[wide, high]| wide * high >= min_tiles)
        .collect();
    grids.sort_by_key(|[wide, high]| wide * high);

    let ratio = width as f64 / height as f64;
    let (mut best, mut smallest) = ([1, 1], f64::INFINITY);
    for [wide, high] in grids {
        let difference = (ratio - wide as f64 / high as f64).abs();
        let filled = (width * height) as f64 > 0.5 * (image_size * image_size * wide * high) as f64;
        if difference < smallest || (difference == smallest && filled) {
            (best, smallest) = ([wide, high], difference);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(width: u32, height: u32) -> [u64; 2] {
        crop_grid(Page { width, height }, &ImageSettings::default())
    }

    #[test]
    fn grids_are_those_of_the_published_code() {
        // width, height, tiles across, tiles down; computed by the published function, see the note beside the file.
        let table = include_str!("../../tests/pillow/crop-grids.csv");
        let mut rows = 0;
        for line in table.lines().skip(1) {
            let row: Vec<u64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
            assert_eq!(grid(row[0] as u32, row[1] as u32), [row[2], row[3]], "{line}");
            rows += 1;
        }
        assert!(rows > 500);
    }

    #[test]
    fn a_page_that_fits_one_tile_is_not_cut() {
        assert_eq!(grid(640, 640), [1, 1]);
        assert_eq!(grid(1, 1), [1, 1]);
        assert_ne!(grid(641, 640), [1, 1]);
        assert_ne!(grid(640, 641), [1, 1]);
    }

    #[test]
    fn the_longest_pages_get_the_longest_grids() {
        assert_eq!(grid(20_000, 1), [9, 1]);
        assert_eq!(grid(1, 20_000), [1, 9]);
    }

    #[test]
    fn equally_near_grids_are_decided_by_the_pixels() {
        // Square: 2 x 2 and 3 x 3 are both exact. 3 x 3 needs more than half of 1920 x 1920.
        assert_eq!(grid(1357, 1357), [2, 2]);
        assert_eq!(grid(1358, 1358), [3, 3]);
    }

    #[test]
    fn tile_limits_are_kept() {
        let settings = ImageSettings { min_tiles: 4, max_tiles: 6, ..ImageSettings::default() };
        for (width, height) in [(641, 1), (1, 5000), (900, 900), (1234, 777), (5000, 100)] {
            let [wide, high] = crop_grid(Page { width, height }, &settings);
            assert!((4..=6).contains(&(wide * high)), "{width} x {height}: {wide} x {high}");
        }
        let none = ImageSettings { min_tiles: 5, max_tiles: 4, ..ImageSettings::default() };
        assert_eq!(crop_grid(Page { width: 2000, height: 2000 }, &none), [1, 1]);
    }

    #[test]
    fn without_crop_mode_nothing_is_cut() {
        let settings = ImageSettings { crop_mode: false, ..ImageSettings::default() };
        assert_eq!(crop_grid(Page { width: 5000, height: 5000 }, &settings), [1, 1]);
    }
}
