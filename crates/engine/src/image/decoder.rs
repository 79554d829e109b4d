//! The decoders of PNG and JPEG files, up to pixels of eight bits.

use std::io::{Cursor, ErrorKind};

use png::{BitDepth, ColorType, DecodingError, Limits, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::format::Format;
use super::orientation::Orientation;

/// What keeps a file from being decoded.
pub(super) enum Failure {
    /// It ends too early.
    Truncated,
    /// What the decoder says.
    Damaged(String),
    /// No decoder reads its format.
    Unread,
}

/// A file whose header has been read.
pub(super) enum Decoder<'a> {
    Png(Box<png::Reader<Cursor<&'a [u8]>>>),
    Jpeg(Box<JpegDecoder<ZCursor<&'a [u8]>>>),
}

impl<'a> Decoder<'a> {
    /// Reads the header; nothing that the decoder keeps may take more than `most_bytes`.
    pub(super) fn open(bytes: &'a [u8], format: Format, most_bytes: usize) -> Result<Self, Failure> {
        match format {
            Format::Png => {
                let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: most_bytes });
                decoder.set_transformations(Transformations::EXPAND);
                Ok(Self::Png(Box::new(decoder.read_info().map_err(of_png)?)))
            }
            Format::Jpeg => {
                let options = DecoderOptions::default().set_strict_mode(false);
                let options = options.set_max_width(usize::MAX).set_max_height(usize::MAX);
                let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
                decoder.decode_headers().map_err(of_jpeg)?;
                if decoder.input_colorspace() == Some(ColorSpace::Luma) {
                    decoder.set_options(options.jpeg_set_out_colorspace(ColorSpace::Luma));
                }
                Ok(Self::Jpeg(Box::new(decoder)))
            }
            Format::Other(_) => Err(Failure::Unread),
        }
    }

    /// Pixels across and down, as they are stored.
    pub(super) fn size(&self) -> [u32; 2] {
        match self {
            Self::Png(reader) => [reader.info().width, reader.info().height],
            Self::Jpeg(decoder) => decoder.dimensions().map_or([0, 0], |(wide, high)| [wide as u32, high as u32]),
        }
    }

    /// Bytes of all that is held at once until the page is red, green and blue, and the right way up.
    pub(super) fn held_bytes(&self) -> u64 {
        let pixels: u64 = self.size().map(u64::from).iter().product();
        let (decoded, rgb) = (self.decoded_bytes(), 3 * pixels);
        let converting = if self.layout() == [3, 1] { rgb } else { decoded + rgb };
        let turning = if self.orientation().is_upright() { rgb } else { 2 * rgb };
        converting.max(turning)
    }

    /// Bytes of all pixels as they are decoded.
    pub(super) fn decoded_bytes(&self) -> u64 {
        let [channels, bytes] = self.layout().map(|size| size as u64);
        self.size().map(u64::from).iter().product::<u64>() * channels * bytes
    }

    pub(super) fn orientation(&self) -> Orientation {
        Orientation::of(match self {
            Self::Png(reader) => reader.info().exif_metadata.as_deref(),
            Self::Jpeg(decoder) => decoder.exif().map(Vec::as_slice),
        })
    }

    /// Red, green and blue of every pixel; transparency is dropped.
    pub(super) fn levels(self) -> Result<Vec<u8>, Failure> {
        let [channels, bytes] = self.layout();
        let length = self.decoded_bytes() as usize;
        let decoded = match self {
            Self::Png(mut reader) => {
                let mut decoded = vec![0; length];
                reader.next_frame(&mut decoded).map_err(of_png)?;
                decoded
            }
            Self::Jpeg(mut decoder) => decoder.decode().map_err(of_jpeg)?,
        };
        if channels == 3 && bytes == 1 {
            return Ok(decoded);
        }
        let level = |pixel: &[u8], channel: usize| match bytes {
            1 => pixel[channel],
            _ => rounded(u16::from_be_bytes([pixel[channel * 2], pixel[channel * 2 + 1]])),
        };
        // Grey is the same in all three.
        let from = if channels < 3 { [0, 0, 0] } else { [0, 1, 2] };
        let pixels = decoded.chunks_exact(channels * bytes);
        // At its size from the start: what grows on demand takes twice as much.
        let mut levels = Vec::with_capacity(pixels.len() * 3);
        pixels.for_each(|pixel| levels.extend(from.map(|channel| level(pixel, channel))));
        Ok(levels)
    }

    /// Channels of a pixel, and bytes of a channel.
    fn layout(&self) -> [usize; 2] {
        match self {
            Self::Png(reader) => {
                let (color, depth) = reader.output_color_type();
                let channels = match color {
                    ColorType::Grayscale | ColorType::Indexed => 1,
                    ColorType::GrayscaleAlpha => 2,
                    ColorType::Rgb => 3,
                    ColorType::Rgba => 4,
                };
                [channels, if depth == BitDepth::Sixteen { 2 } else { 1 }]
            }
            Self::Jpeg(decoder) => {
                [if decoder.options().jpeg_get_out_colorspace() == ColorSpace::Luma { 1 } else { 3 }, 1]
            }
        }
    }
}

/// The nearest of 256 levels to one of 65,536.
fn rounded(level: u16) -> u8 {
    ((u32::from(level) + 128) / 257) as u8
}

fn of_png(error: DecodingError) -> Failure {
    match error {
        DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => Failure::Truncated,
        other => Failure::Damaged(other.to_string()),
    }
}

fn of_jpeg(error: zune_jpeg::errors::DecodeErrors) -> Failure {
    Failure::Damaged(error.to_string().trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bits_become_the_nearest_eight() {
        assert_eq!([0, 128, 129, 257, 32_768, 65_407, 65_535].map(rounded), [0, 0, 1, 1, 128, 255, 255]);
    }
}
