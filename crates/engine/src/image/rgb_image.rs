//! A decoded image: levels of red, green and blue, the right way up.

use super::decoder::{Decoder, Failure};
use super::format::Format;
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
    let (decoder, _) = open(name, bytes)?;
    let [width, height] = decoder.size();
    Ok(match decoder.orientation().is_turned() {
        true => Page { width: height, height: width },
        false => Page { width, height },
    })
}

/// Decodes a PNG or JPEG image, turns it the right way up and drops transparency; `name` is what errors call it.
pub fn decode(name: &str, bytes: &[u8]) -> Result<RgbImage, InputError> {
    let (decoder, format) = open(name, bytes)?;
    if format == Format::Jpeg && !jpeg::is_whole(bytes) {
        return Err(failed(name, bytes, format, Failure::Truncated));
    }
    let ([width, height], orientation) = (decoder.size(), decoder.orientation());
    let levels = decoder.levels().map_err(|failure| failed(name, bytes, format, failure))?;
    Ok(orientation.upright(RgbImage { page: Page { width, height }, levels }))
}

/// A decoder for the format that the first bytes tell, within the limits.
fn open<'a>(name: &str, bytes: &'a [u8]) -> Result<(Decoder<'a>, Format), InputError> {
    if bytes.is_empty() {
        return Err(InputError::EmptyImage { name: name.into() });
    }
    let Some(format) = Format::of(bytes) else {
        return Err(InputError::NotAnImage { name: name.into(), beginning: beginning(bytes) });
    };
    let most = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
    let decoder = Decoder::open(bytes, format, most).map_err(|failure| failed(name, bytes, format, failure))?;
    let [width, height] = decoder.size();
    if width == 0 || height == 0 {
        let reason = format!("it has {width} x {height} pixels");
        return Err(failed(name, bytes, format, Failure::Damaged(reason)));
    }
    if width.max(height) > MOST_SIDE || decoder.decoded_bytes() > MOST_BYTES {
        let (most_side, most_bytes) = (MOST_SIDE, MOST_BYTES);
        return Err(InputError::ImageTooLarge { name: name.into(), width, height, most_side, most_bytes });
    }
    Ok((decoder, format))
}

fn failed(name: &str, bytes: &[u8], format: Format, failure: Failure) -> InputError {
    let (name, format) = (name.to_owned(), format.name());
    match failure {
        Failure::Truncated => InputError::TruncatedImage { name, format, bytes: bytes.len() },
        Failure::Damaged(reason) => InputError::DamagedImage { name, format, reason },
        Failure::Unread => InputError::UnreadFormat { name, format: format.into() },
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
