//! Image files, from their bytes: good ones, odd ones and broken ones.

use std::path::{Path, PathBuf};

use llm_perf_engine::image::{ImageSettings, Page, RgbImage, crop_grid, decode, measure, prepare, thumbnail};
use sha2::{Digest, Sha256};

fn pillow(name: &str) -> Vec<u8> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pillow");
    std::fs::read(folder.join(name)).unwrap()
}

fn image(name: &str) -> RgbImage {
    decode(name, &pillow(name)).unwrap()
}

/// A small page as its thumbnail, which is a JPEG of the same size.
fn jpeg(width: u32, height: u32) -> Vec<u8> {
    let pixels: Vec<u8> = (0..width * height).map(|index| (index * 7919 % 251) as u8).collect();
    thumbnail("small", &grey(width, height, &pixels)).unwrap()
}

fn png(width: u32, height: u32) -> Vec<u8> {
    grey(width, height, &vec![255; width as usize * height as usize])
}

fn grey(width: u32, height: u32, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    png::Encoder::new(&mut bytes, width, height).write_header().unwrap().write_image_data(pixels).unwrap();
    bytes
}

#[test]
fn every_orientation_is_turned_as_pillow_turns_it() {
    for orientation in 1..=8 {
        let upright = image(&format!("upright-{orientation}.png"));
        let name = format!("orientation-{orientation}.png");
        assert_eq!(image(&name).levels(), upright.levels(), "{name}");
        assert_eq!(measure(&name, &pillow(&name)).unwrap(), upright.page(), "{name}");
    }
}

#[test]
fn the_orientation_of_a_jpeg_is_applied() {
    // An application segment with one entry: orientation 6, so that the page is turned by a quarter.
    let entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0];
    let exif = [&b"Exif\0\0MM\0*\0\0\0\x08\0\x01"[..], &entry, &[0; 4]].concat();
    let plain = jpeg(40, 24);
    let length = (exif.len() as u16 + 2).to_be_bytes();
    let turned = [&plain[..2], &[0xff, 0xe1], &length, &exif, &plain[2..]].concat();
    assert_eq!(measure("turned.jpg", &turned).unwrap(), Page { width: 24, height: 40 });
    assert_eq!(decode("turned.jpg", &turned).unwrap().page(), Page { width: 24, height: 40 });
}

#[test]
fn every_kind_of_pixel_becomes_red_green_and_blue() {
    for kind in ["grey", "palette", "transparent", "bilevel"] {
        let expected = image(&format!("mode-{kind}-rgb.png"));
        assert_eq!(image(&format!("mode-{kind}.png")).levels(), expected.levels(), "{kind}");
    }
}

#[test]
fn the_name_does_not_decide_the_format() {
    assert_eq!(decode("page.png", &jpeg(9, 5)).unwrap().page(), Page { width: 9, height: 5 });
}

#[test]
fn a_text_file_is_not_an_image() {
    let error = decode("notes.png", b"Dear reader,\nthis is a letter.").unwrap_err();
    assert_eq!(error.to_string(), r#"notes.png is not an image: it starts with "Dear reader,\nthi""#);
    assert_eq!(error.hints, ["remove the file from the inputs"]);
}

#[test]
fn an_empty_file_says_so() {
    assert_eq!(decode("empty.jpg", b"").unwrap_err().to_string(), "empty.jpg is empty");
}

#[test]
fn other_formats_are_named() {
    let error = decode("moving.gif", b"GIF89a\x01\0\x01\0").unwrap_err();
    assert_eq!(error.to_string(), "moving.gif is a GIF image; only PNG and JPEG are read");
}

#[test]
fn a_truncated_jpeg_is_refused_wherever_it_is_cut() {
    let bytes = jpeg(64, 64);
    for length in [bytes.len() / 2, bytes.len() - 1] {
        let error = decode("page.jpg", &bytes[..length]).unwrap_err();
        assert!(error.to_string().starts_with("page.jpg is truncated"), "{error}");
        assert!(error.to_string().contains(&format!("ends after {length} bytes")), "{error}");
    }
    for length in 1..bytes.len() {
        assert!(decode("page.jpg", &bytes[..length]).unwrap_err().to_string().starts_with("page.jpg is "));
    }
}

#[test]
fn a_truncated_png_is_refused_wherever_it_is_cut() {
    // The end mark is a chunk of twelve bytes without content; nothing is lost without it.
    let bytes = pillow("source.png");
    for length in (1..bytes.len() - 12).step_by(7) {
        let error = decode("page.png", &bytes[..length]).unwrap_err();
        assert!(error.to_string().starts_with("page.png is "), "{length}: {error}");
    }
}

#[test]
fn a_png_without_pixels_is_refused() {
    let mut bytes = png(1, 1);
    bytes[16..20].copy_from_slice(&[0; 4]);
    assert!(decode("none.png", &bytes).unwrap_err().message.starts_with("none.png is a damaged PNG image"));
}

#[test]
fn a_page_of_20_000_pixels_is_prepared() {
    let wide = decode("wide.png", &png(20_000, 30)).unwrap();
    let settings = ImageSettings { base_size: 64, image_size: 32, ..ImageSettings::default() };
    let page = prepare(&wide, &settings);
    assert_eq!(page.crop_grid, [9, 1]);
    assert_eq!(page.tiles.unwrap().count, 9);
}

#[test]
fn an_image_past_the_limits_is_refused_before_it_is_decoded() {
    let error = decode("huge.png", &png(30_001, 1)).unwrap_err();
    assert!(error.to_string().starts_with("huge.png has 30001 x 1 pixels; the limits are 30000 per side"), "{error}");

    // The header alone claims 30,000 x 30,000 pixels.
    let mut bytes = png(1, 1);
    bytes[16..20].copy_from_slice(&30_000_u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&30_000_u32.to_be_bytes());
    let checksum = checksum(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
    assert!(decode("bomb.png", &bytes).unwrap_err().message.starts_with("bomb.png has 30000 x 30000 pixels"));
}

/// The checksum of a PNG chunk.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { 0xedb8_8320 ^ (sum >> 1) } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum: u32, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    pages: Vec<ShippedPage>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ShippedPage {
    file: String,
    category: String,
    width: u32,
    height: u32,
    bytes: usize,
    sha256: String,
    note: String,
}

fn shipped() -> (PathBuf, Manifest) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/pages");
    let text = std::fs::read_to_string(folder.join("manifest.yaml")).unwrap();
    (folder, serde_saphyr::from_str(&text).unwrap())
}

#[test]
fn shipped_pages_are_what_their_manifest_says() {
    let (folder, manifest) = shipped();
    for page in &manifest.pages {
        let bytes = std::fs::read(folder.join(&page.file)).unwrap();
        assert_eq!(bytes.len(), page.bytes, "{}", page.file);
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, page.sha256, "{}", page.file);
        let size = Page { width: page.width, height: page.height };
        assert_eq!(measure(&page.file, &bytes).unwrap(), size, "{}", page.file);
        assert_eq!(decode(&page.file, &bytes).unwrap().page(), size, "{}", page.file);
        assert!(!page.note.is_empty());
    }
    let mut listed: Vec<String> = manifest.pages.into_iter().map(|page| page.file).collect();
    listed.push("manifest.yaml".into());
    listed.sort();
    let mut found: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, listed);
}

#[test]
fn shipped_pages_are_few_small_and_diverse() {
    let (_, manifest) = shipped();
    for category in ["text-heavy", "mixed-layout", "image-rich"] {
        assert_eq!(manifest.pages.iter().filter(|page| page.category == category).count(), 4, "{category}");
    }
    assert_eq!(manifest.pages.len(), 12);
    let total: usize = manifest.pages.iter().map(|page| page.bytes).sum();
    assert!(total < 650_000, "{total} bytes");
    let grids: std::collections::BTreeSet<[u64; 2]> = manifest
        .pages
        .iter()
        .map(|page| crop_grid(Page { width: page.width, height: page.height }, &ImageSettings::default()))
        .collect();
    assert!(grids.len() >= 6 && grids.contains(&[1, 1]), "{grids:?}");
}
