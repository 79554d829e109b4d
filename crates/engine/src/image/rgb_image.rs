//! A decoded image: levels of red, green and blue, the right way up.

use std::io::Cursor;

use image::codecs::{jpeg::JpegDecoder, png::PngDecoder};
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, Limits, metadata::Orientation};

use super::jpeg;
use crate::InputError;

/// Most pixels along a side. A poster scanned at 600 dots per inch is below; what is above is mostly an attack.
const MOST_SIDE: u32 = 30_000;

/// Most bytes of decoded pixels: 178 million pixels of three bytes, where Pillow stops too.
const MOST_BYTES: u64 = 512 << 20;

/// Size of a page, the right way up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

/// A decoded page, three bytes a pixel, row by row.
#[derive(Clone, PartialEq, Eq)]
pub struct RgbImage {
    page: Page,
    levels: Vec<u8>,
}

/// Size of the image in `bytes`, from its header alone; `name` is what errors call it.
pub fn measure(name: &str, bytes: &[u8]) -> Result<Page, InputError> {
    let (mut decoder, format) = open(name, bytes)?;
    let (width, height) = decoder.dimensions();
    let turned = match orientation(decoder.as_mut()).map_err(|error| damaged(name, bytes, format, &error))? {
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH => {
            true
        }
        Orientation::NoTransforms | Orientation::Rotate180 => false,
        Orientation::FlipHorizontal | Orientation::FlipVertical => false,
    };
    Ok(if turned { Page { width: height, height: width } } else { Page { width, height } })
}

/// Decodes a PNG or JPEG image, turns it the right way up and drops transparency; `name` is what errors call it.
pub fn decode(name: &str, bytes: &[u8]) -> Result<RgbImage, InputError> {
    let (mut decoder, format) = open(name, bytes)?;
    if format == ImageFormat::Jpeg && !jpeg::is_whole(bytes) {
        return Err(InputError::TruncatedImage { name: name.into(), format: format_name(format), bytes: bytes.len() });
    }
    let decoded = orientation(decoder.as_mut()).and_then(|orientation| {
        let mut image = DynamicImage::from_decoder(decoder)?;
        image.apply_orientation(orientation);
        Ok(image.into_rgb8())
    });
    let image = decoded.map_err(|error| damaged(name, bytes, format, &error))?;
    Ok(RgbImage { page: Page { width: image.width(), height: image.height() }, levels: image.into_raw() })
}

type Decoder<'a> = Box<dyn ImageDecoder + 'a>;

/// A decoder for the format that the first bytes tell, within the limits.
fn open<'a>(name: &str, bytes: &'a [u8]) -> Result<(Decoder<'a>, ImageFormat), InputError> {
    if bytes.is_empty() {
        return Err(InputError::EmptyImage { name: name.into() });
    }
    let Ok(format) = image::guess_format(bytes) else {
        return Err(InputError::NotAnImage { name: name.into(), beginning: beginning(bytes) });
    };
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MOST_BYTES);
    let opened: Result<Decoder, ImageError> = match format {
        ImageFormat::Png => PngDecoder::with_limits(Cursor::new(bytes), limits).map(|decoder| Box::new(decoder) as _),
        ImageFormat::Jpeg => JpegDecoder::new(Cursor::new(bytes)).map(|decoder| Box::new(decoder) as _),
        other => return Err(InputError::UnreadFormat { name: name.into(), format: format_name(other).into() }),
    };
    let decoder = opened.map_err(|error| damaged(name, bytes, format, &error))?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        let reason = format!("it has {width} x {height} pixels");
        return Err(InputError::DamagedImage { name: name.into(), format: format_name(format), reason });
    }
    if width.max(height) > MOST_SIDE || decoder.total_bytes() > MOST_BYTES {
        let (most_side, most_bytes) = (MOST_SIDE, MOST_BYTES);
        return Err(InputError::ImageTooLarge { name: name.into(), width, height, most_side, most_bytes });
    }
    Ok((decoder, format))
}

fn orientation(decoder: &mut dyn ImageDecoder) -> Result<Orientation, ImageError> {
    decoder.orientation()
}

fn damaged(name: &str, bytes: &[u8], format: ImageFormat, error: &ImageError) -> InputError {
    let (name, format) = (name.to_owned(), format_name(format));
    match error {
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            InputError::TruncatedImage { name, format, bytes: bytes.len() }
        }
        other => InputError::DamagedImage { name, format, reason: other.to_string() },
    }
}

fn format_name(format: ImageFormat) -> &'static str {
    match format {
        ImageFormat::Png => "PNG",
        ImageFormat::Jpeg => "JPEG",
        ImageFormat::Gif => "GIF",
        ImageFormat::WebP => "WebP",
        ImageFormat::Tiff => "TIFF",
        ImageFormat::Bmp => "BMP",
        ImageFormat::Avif => "AVIF",
        other => other.extensions_str().first().copied().unwrap_or("unknown"),
    }
}

/// The first bytes, for a message.
fn beginning(bytes: &[u8]) -> String {
    let first = &bytes[..bytes.len().min(16)];
    format!("\"{}\"", first.escape_ascii())
}

impl RgbImage {
    /// Pixels across.
    pub fn width(&self) -> u32 {
        self.page.width
    }

    /// Pixels down.
    pub fn height(&self) -> u32 {
        self.page.height
    }

    /// Its size.
    pub fn page(&self) -> Page {
        self.page
    }

    /// Red, green and blue of each pixel, row by row.
    pub fn levels(&self) -> &[u8] {
        &self.levels
    }

    pub(super) fn from_levels(width: usize, height: usize, levels: Vec<u8>) -> Self {
        debug_assert_eq!(levels.len(), width * height * 3);
        Self { page: Page { width: width as u32, height: height as u32 }, levels }
    }

    pub(super) fn filled(width: usize, height: usize, level: u8) -> Self {
        Self::from_levels(width, height, vec![level; width * height * 3])
    }

    /// The part that starts at `left`, `top`; it must lie inside.
    pub(super) fn window(&self, left: usize, top: usize, width: usize, height: usize) -> Self {
        let stride = self.page.width as usize * 3;
        let rows = self.levels.chunks_exact(stride).skip(top).take(height);
        let levels = rows.flat_map(|row| &row[left * 3..(left + width) * 3]).copied().collect();
        Self::from_levels(width, height, levels)
    }

    /// Copies `other` to `left`, `top`; it must lie inside.
    pub(super) fn paste(&mut self, other: &Self, left: usize, top: usize) {
        if other.levels.is_empty() {
            return;
        }
        let (stride, length) = (self.page.width as usize * 3, other.page.width as usize * 3);
        let rows = self.levels.chunks_exact_mut(stride).skip(top);
        for (row, from) in rows.zip(other.levels.chunks_exact(length)) {
            row[left * 3..left * 3 + length].copy_from_slice(from);
        }
    }
}

impl std::fmt::Debug for RgbImage {
    /// Without its pixels, which are millions.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RgbImage").field("page", &self.page).finish_non_exhaustive()
    }
}
