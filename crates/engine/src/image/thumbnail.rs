//! A small picture of a page, for people to know it by.

use jpeg_encoder::{ColorType, Encoder};
use types::UserError;

use super::decode::decode;
use super::resample::resize;

/// Pixels along the longer side, at most.
const SIDE: u32 = 160;

const QUALITY: u8 = 70;

/// The image in `bytes` as a JPEG of at most 160 pixels along either side; `name` is what errors call it. Nothing of the file
/// but its pixels is in it: no place, no camera, no comment.
pub fn thumbnail(name: &str, bytes: &[u8]) -> Result<Vec<u8>, UserError> {
    let page = decode(name, bytes)?;
    let longer = page.width().max(page.height());
    let scaled = |side: u32| {
        if longer > SIDE { (u64::from(side) * u64::from(SIDE)).div_ceil(u64::from(longer)).max(1) as u32 } else { side }
    };
    let (width, height) = (scaled(page.width()), scaled(page.height()));
    let small = if longer > SIDE { resize(&page, width as usize, height as usize) } else { page };
    let mut jpeg = Vec::new();
    Encoder::new(&mut jpeg, QUALITY)
        .encode(small.levels(), width as u16, height as u16, ColorType::Rgb)
        .map_err(|error| UserError::failed(format!("cannot make a thumbnail of {name}: {error}")))?;
    Ok(jpeg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::measure;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let pixels: Vec<u8> = (0..width * height).flat_map(|at| [(at % width) as u8, (at / width) as u8, 9]).collect();
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        bytes
    }

    #[test]
    fn a_page_keeps_its_shape_and_a_small_one_its_size() {
        for (from, to) in [((1_600, 800), (160, 80)), ((30, 20), (30, 20)), ((4_000, 3), (160, 1))] {
            let small = thumbnail("page", &png(from.0, from.1)).unwrap();
            let page = measure("small", &small).unwrap();
            assert_eq!((page.width, page.height), to, "{from:?}");
            assert!(small.len() < 16 << 10, "{} bytes", small.len());
        }
    }

    #[test]
    fn what_is_no_image_is_named() {
        let error = thumbnail("a.png", b"text").unwrap_err().to_string();
        assert!(error.contains("a.png"), "{error}");
    }
}
