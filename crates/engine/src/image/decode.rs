//! From the bytes of a file to an image the right way up, within limits.

use types::UserError;

use super::decoder::{Decoder, Failure};
use super::format::Format;
use super::jpeg;
use super::rgb_image::{Page, RgbImage};

/// Most pixels along a side. A poster scanned at 600 dots per inch is below; what is above is mostly an attack.
const MOST_SIDE: u32 = 30_000;

/// Most bytes that decoding may hold: 178 million pixels of three bytes, where Pillow stops too, and fewer of what has to be copied.
const MOST_BYTES: u64 = 512 << 20;

const COPY_AGAIN: &str = "copy the file again from its source, or remove it from the inputs";

/// Size of the image in `bytes`, from its header alone; `name` is what errors call it.
pub fn measure(name: &str, bytes: &[u8]) -> Result<Page, UserError> {
    let (decoder, _) = open(name, bytes)?;
    let [width, height] = decoder.size();
    let is_turned = decoder.orientation().is_turned();
    Ok(if is_turned { Page { width: height, height: width } } else { Page { width, height } })
}

/// Decodes a PNG or JPEG image, turns it the right way up and drops transparency; `name` is what errors call it.
pub fn decode(name: &str, bytes: &[u8]) -> Result<RgbImage, UserError> {
    let (decoder, format) = open(name, bytes)?;
    if format == Format::Jpeg && !jpeg::is_whole(bytes) {
        return Err(failed(name, bytes, format, Failure::Truncated));
    }
    let ([width, height], orientation) = (decoder.size(), decoder.orientation());
    let levels = decoder.levels().map_err(|failure| failed(name, bytes, format, failure))?;
    Ok(orientation.upright(RgbImage::from_levels(width as usize, height as usize, levels)))
}

/// A decoder for the format that the first bytes tell, within the limits.
fn open<'a>(name: &str, bytes: &'a [u8]) -> Result<(Decoder<'a>, Format), UserError> {
    if bytes.is_empty() {
        return Err(UserError::failed(format!("{name} is empty")).hint(COPY_AGAIN));
    }
    let Some(format) = Format::of(bytes) else {
        let message = format!("{name} is not an image: it starts with {}", beginning(bytes));
        return Err(UserError::failed(message).hint("remove the file from the inputs"));
    };
    let most = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
    let decoder = Decoder::open(bytes, format, most).map_err(|failure| failed(name, bytes, format, failure))?;
    let [width, height] = decoder.size();
    if width == 0 || height == 0 {
        let reason = format!("it has {width} x {height} pixels");
        return Err(failed(name, bytes, format, Failure::Damaged(reason)));
    }
    if width.max(height) > MOST_SIDE || decoder.held_bytes() > MOST_BYTES {
        return Err(UserError::failed(format!(
            "{name} has {width} x {height} pixels; the limits are {MOST_SIDE} per side and {MOST_BYTES} bytes decoded"
        ))
        .hint("scale the image down; the network sees only a few tiles of it"));
    }
    Ok((decoder, format))
}

fn failed(name: &str, bytes: &[u8], format: Format, failure: Failure) -> UserError {
    let format = format.name();
    match failure {
        Failure::Truncated => UserError::failed(format!(
            "{name} is truncated: the {format} image ends after {} bytes, before its end marker",
            bytes.len()
        ))
        .hint(COPY_AGAIN),
        Failure::Damaged(reason) => {
            UserError::failed(format!("{name} is a damaged {format} image: {reason}")).hint(COPY_AGAIN)
        }
        Failure::Unread => UserError::failed(format!("{name} is a {format} image; only PNG and JPEG are read"))
            .hint("convert it to PNG or JPEG"),
    }
}

/// The first bytes, for a message.
fn beginning(bytes: &[u8]) -> String {
    let first = &bytes[..bytes.len().min(16)];
    format!("\"{}\"", first.escape_ascii())
}
