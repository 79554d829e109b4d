//! Which way up a camera held an image, as its metadata says.

use super::rgb_image::RgbImage;

/// The tag of the orientation, and the type of its value, a 16-bit number.
const TAG: u16 = 0x112;
const SHORT: u16 = 3;
/// Bytes of an entry.
const ENTRY: usize = 12;

/// The number of Exif 2.3, section 4.6.4: where the first row and the first column of the file belong, from 1 to 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orientation(u16);

impl Orientation {
    /// From the metadata of a file; upright where they do not say.
    pub(super) fn of(exif: Option<&[u8]>) -> Self {
        Self(exif.and_then(find).filter(|number| (1..=8).contains(number)).unwrap_or(1))
    }

    /// Whether nothing is to be done.
    pub(super) fn is_upright(self) -> bool {
        self.0 == 1
    }

    /// Whether rows become columns.
    pub(super) fn is_turned(self) -> bool {
        self.0 >= 5
    }

    /// The image the right way up.
    pub(super) fn upright(self, image: RgbImage) -> RgbImage {
        if self.0 == 1 {
            return image;
        }
        let (wide, high) = (image.width() as usize, image.height() as usize);
        let (across, down) = if self.is_turned() { (high, wide) } else { (wide, high) };
        let mut levels = Vec::with_capacity(image.levels().len());
        for y in 0..down {
            for x in 0..across {
                let (column, row) = match self.0 {
                    2 => (wide - 1 - x, y),
                    3 => (wide - 1 - x, high - 1 - y),
                    4 => (x, high - 1 - y),
                    5 => (y, x),
                    6 => (y, high - 1 - x),
                    7 => (wide - 1 - y, high - 1 - x),
                    _ => (wide - 1 - y, x),
                };
                levels.extend_from_slice(&image.levels()[(row * wide + column) * 3..][..3]);
            }
        }
        RgbImage::from_levels(across, down, levels)
    }
}

/// The number in the first directory of the metadata, which are a TIFF file without an image.
fn find(exif: &[u8]) -> Option<u16> {
    let is_big = match exif.get(..4)? {
        b"MM\0*" => true,
        b"II*\0" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = exif.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let long = |at: usize| {
        let bytes = exif.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let directory = long(4)? as usize;
    let entries = (0..usize::from(short(directory)?)).map(|index| directory + 2 + index * ENTRY);
    let mut entries = entries.take_while(|at| at + ENTRY <= exif.len());
    let is_orientation =
        |at: &usize| [short(*at), short(at + 2)] == [Some(TAG), Some(SHORT)] && long(at + 4) == Some(1);
    short(entries.find(is_orientation)? + 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_of_bytes_are_read_and_nonsense_is_upright() {
        let entry = |tag: [u8; 2]| [&tag[..], &[0, 3, 0, 0, 0, 1, 0, 6, 0, 0]].concat();
        let big = [&b"MM\0*\0\0\0\x08\0\x02"[..], &entry([1, 0x0f]), &entry([1, 0x12])].concat();
        let little = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0";
        assert_eq!((Orientation::of(Some(&big)), Orientation::of(Some(little))), (Orientation(6), Orientation(8)));
        for cut in 0..big.len() {
            assert_eq!(Orientation::of(Some(&big[..cut])), Orientation(1), "{cut}");
        }
        let mut odd = little.to_vec();
        odd[18] = 9;
        assert_eq!(Orientation::of(Some(&odd)), Orientation(1));
        odd[4..8].fill(0xff);
        assert_eq!((Orientation::of(Some(&odd)), Orientation::of(None)), (Orientation(1), Orientation(1)));
    }
}
