//! The format of an image file, from its first bytes.

/// A format, whether it is read or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Png,
    Jpeg,
    Other(&'static str),
}

impl Format {
    /// Of a file with these bytes; none where it is no image.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        Some(match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Self::Png,
            [0xff, 0xd8, 0xff, ..] => Self::Jpeg,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Self::Other("GIF"),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Self::Other("WebP"),
            [b'M', b'M', 0, b'*', ..] | [b'I', b'I', b'*', 0, ..] => Self::Other("TIFF"),
            [b'B', b'M', ..] => Self::Other("BMP"),
            [0, 0, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', b'f', ..] => Self::Other("AVIF"),
            [0, 0, 1, 0, ..] => Self::Other("ICO"),
            [0x76, 0x2f, 0x31, 0x01, ..] => Self::Other("OpenEXR"),
            [b'P', b'1'..=b'7', ..] => Self::Other("PNM"),
            _ if bytes.starts_with(b"DDS ") => Self::Other("DDS"),
            _ if bytes.starts_with(b"qoif") => Self::Other("QOI"),
            _ if bytes.starts_with(b"#?RADIANCE") => Self::Other("HDR"),
            _ if bytes.starts_with(b"farbfeld") => Self::Other("farbfeld"),
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Other(name) => name,
        }
    }
}
