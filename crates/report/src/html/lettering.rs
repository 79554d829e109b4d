//! How wide a text is drawn, so that a label stays in its place.
//!
//! A drawing does not know the font that it is shown in. These are the widths of DejaVu Sans, which is among the widest that a
//! `sans-serif` stands for: in another font a label takes less room, never more.

/// Width of a drawing, in its own units.
pub(super) const WIDTH: f64 = 960.0;

/// Advances from the space to the tilde, in thousandths of the font's size.
const ADVANCES: [u16; 95] = [
    318, 401, 460, 838, 637, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337, 637, 637, 637, 637, 637, 637, 637,
    637, 637, 637, 337, 337, 838, 838, 838, 531, 1000, 685, 687, 699, 771, 632, 576, 775, 752, 295, 295, 656, 558, 863,
    749, 788, 604, 788, 695, 635, 611, 732, 685, 989, 686, 611, 686, 391, 337, 391, 838, 500, 500, 613, 635, 550, 635,
    616, 353, 635, 634, 278, 278, 580, 278, 975, 634, 612, 635, 635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637,
    337, 637, 838,
];

/// The width of a text in letters of a size, in the units of that size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// Of other characters the widest is taken.
fn advance(c: char) -> f64 {
    let place = (c as usize).checked_sub(' ' as usize);
    f64::from(place.and_then(|place| ADVANCES.get(place)).copied().unwrap_or(1_000)) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_wide_as_its_characters() {
        // "mi." is 0.975 + 0.278 + 0.318 of the size.
        assert!((width("mi.", 10.0) - 15.71).abs() < 1e-9);
        assert_eq!(width("", 12.0), 0.0);
        assert_eq!(width("日", 12.0), 12.0);
    }
}
