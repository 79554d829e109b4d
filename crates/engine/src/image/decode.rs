//! From the bytes of a file to an image the right way up, within limits.

use super::decoder::{Decoder, Failure};
use super::format::Format;
use super::jpeg;
use super::rgb_image::{Page, RgbImage};
use crate::InputError;

/// Most pixels along a side. A poster scanned at 600 dots per inch is below; what is above is mostly an attack.
const MOST_SIDE: u32 = 30_000;

/// Most bytes that decoding may hold: 178 million pixels of three bytes, where Pillow stops too, and fewer of what has to be copied.
const MOST_BYTES: u64 = 512 << 20;

/// Size of the image in `bytes`, from its header alone; `name` is what errors call it.
pub fn measure(name: &str, bytes: &[u8]) -> Result<Page, InputError> {
    let (decoder, _) = open(name, bytes)?;
    let [width, height] = decoder.size();
    let is_turned = decoder.orientation().is_turned();
    Ok(if is_turned { Page { width: height, height: width } } else { Page { width, height } })
}

/// Decodes a PNG or JPEG image, turns it the right way up and drops transparency; `name` is what errors call it.
pub fn decode(name: &str, bytes: &[u8]) -> Result<RgbImage, InputError> {
    let (decoder, format) = open(name, bytes)?;
    if format == Format::Jpeg && !jpeg::is_whole(bytes) {
        return Err(failed(name, bytes, format, Failure::Truncated));
    }
    let ([width, height], orientation) = (decoder.size(), decoder.orientation());
    let levels = decoder.levels().map_err(|failure| failed(name, bytes, format, failure))?;
    Ok(orientation.upright(RgbImage::from_levels(width as usize, height as usize, levels)))
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
    if width.max(height) > MOST_SIDE || decoder.held_bytes() > MOST_BYTES {
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
