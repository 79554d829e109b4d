//! What can be wrong with what a user hands in: pictures, tokenizers, prompts and sampling settings.

/// An input that cannot be used, by cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// A picture file without content.
    #[error("{name} is empty")]
    EmptyPicture {
        /// The file.
        name: String,
    },
    /// A file that is no picture, whatever its name says.
    #[error("{name} is not a picture: it begins with {beginning}")]
    NotAPicture {
        /// The file.
        name: String,
        /// Its first bytes, printable ones as text.
        beginning: String,
    },
    /// A picture in a format that is not read.
    #[error("{name} is a {format} picture; only PNG and JPEG are read")]
    UnreadFormat {
        /// The file.
        name: String,
        /// Its format.
        format: String,
    },
    /// A picture file that ends too early.
    #[error("{name} is cut off: a {format} picture that ends after {bytes} bytes, before its end mark")]
    TruncatedPicture {
        /// The file.
        name: String,
        /// Its format.
        format: &'static str,
        /// Bytes there are.
        bytes: usize,
    },
    /// A picture file whose content does not decode.
    #[error("{name} is a damaged {format} picture: {reason}")]
    DamagedPicture {
        /// The file.
        name: String,
        /// Its format.
        format: &'static str,
        /// What the decoder says.
        reason: String,
    },
    /// A picture larger than is decoded.
    #[error(
        "{name} has {width} x {height} pixels; at most {most_side} along a side and {most_bytes} bytes decoded are read"
    )]
    PictureTooLarge {
        /// The file.
        name: String,
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
        /// Most pixels along a side.
        most_side: u32,
        /// Most bytes of decoded pixels.
        most_bytes: u64,
    },
}

impl InputError {
    /// What the user can do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::EmptyPicture { .. } | Self::TruncatedPicture { .. } | Self::DamagedPicture { .. } => {
                Some("copy the file again from where it came from, or leave it out of the inputs")
            }
            Self::NotAPicture { .. } => Some("leave the file out of the inputs"),
            Self::UnreadFormat { .. } => Some("convert it to PNG or JPEG"),
            Self::PictureTooLarge { .. } => Some("scale the picture down; the network sees 9 tiles of it at most"),
        }
    }
}
