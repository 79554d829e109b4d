//! A picture file: measured from its header and decoded, or refused by name. The two agree on the size, and any picture
//! small enough to be scaled quickly becomes a page.

use engine::image::{ImageSettings, decode, measure, prepare};

/// Larger pictures are decoded but not scaled; scaling is arithmetic whose path does not depend on the bytes.
const SCALED: u64 = 1 << 16;

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let Ok(page) = measure("page", bytes) else { return false };
    if u64::from(page.width) * u64::from(page.height) > 1 << 22 {
        return false;
    }
    let Ok(picture) = decode("page", bytes) else { return false };
    assert_eq!(picture.page(), page);
    if u64::from(page.width) * u64::from(page.height) <= SCALED {
        let settings = ImageSettings { base_size: 64, image_size: 32, ..ImageSettings::default() };
        let prepared = prepare(&picture, &settings);
        let [wide, high] = prepared.crop_grid;
        assert_eq!(prepared.tiles.map_or(1, |tiles| tiles.count as u64), wide * high);
    }
    true
}
