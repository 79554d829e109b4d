//! Rows as SQLite stores them: a header of types, then the values.
//!
//! Format: <https://www.sqlite.org/fileformat2.html#record_format>. Only the columns somebody asked for are decoded.

/// One value of a row. Text is bytes, because a file can claim anything; whoever keeps it checks it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

/// A row that is not what its table says, or not a row at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl<'a> Value<'a> {
    /// A number that may be absent.
    pub(crate) fn integer(self) -> Result<Option<i64>, Malformed> {
        match self {
            Self::Null => Ok(None),
            Self::Integer(number) => Ok(Some(number)),
            _ => Err(Malformed),
        }
    }

    /// A number that must be there.
    pub(crate) fn required(self) -> Result<i64, Malformed> {
        self.integer()?.ok_or(Malformed)
    }

    /// A number that may be absent and fits a narrower type.
    pub(crate) fn narrow<T: TryFrom<i64>>(self) -> Result<Option<T>, Malformed> {
        self.integer()?.map(|number| T::try_from(number).map_err(|_| Malformed)).transpose()
    }

    /// A text that may be absent.
    pub(crate) fn text(self) -> Result<Option<&'a [u8]>, Malformed> {
        match self {
            Self::Null => Ok(None),
            Self::Text(text) => Ok(Some(text)),
            _ => Err(Malformed),
        }
    }
}

/// Which stored columns go to which of `N` places.
#[derive(Clone, Debug)]
pub(crate) struct Layout<const N: usize> {
    /// The place of each stored column up to the last one asked for.
    places: Vec<Option<u8>>,
    /// The place of the column that is another name of the row's own number, and is stored nowhere.
    row_number: Option<usize>,
}

impl<const N: usize> Layout<N> {
    /// A layout from the stored position of each wanted column; one that is not stored is always null.
    pub(crate) fn new(stored: [Option<usize>; N], row_number: Option<usize>) -> Self {
        const { assert!(N < 256) };
        let length = stored.iter().flatten().max().map_or(0, |last| last + 1);
        let mut places = vec![None; length];
        for (place, column) in stored.iter().enumerate() {
            if let Some(column) = column {
                places[*column] = Some(place as u8);
            }
        }
        let row_number = row_number.and_then(|column| stored.iter().position(|place| *place == Some(column)));
        Self { places, row_number }
    }

    /// The wanted values of a row. Columns added to a table later are missing in its older rows: null.
    pub(crate) fn decode<'a>(&self, number: i64, payload: &'a [u8]) -> Result<[Value<'a>; N], Malformed> {
        let mut values = [Value::Null; N];
        let (header_size, mut at) = varint(payload, 0).ok_or(Malformed)?;
        let header_size = usize::try_from(header_size).map_err(|_| Malformed)?;
        let header = payload.get(..header_size).ok_or(Malformed)?;
        let mut body = header_size;
        for place in &self.places {
            if at >= header.len() {
                break;
            }
            let (kind, next) = varint(header, at).ok_or(Malformed)?;
            at = next;
            let size = size(kind).ok_or(Malformed)?;
            let end = body.checked_add(size).ok_or(Malformed)?;
            if let Some(place) = place {
                values[usize::from(*place)] = value(kind, payload.get(body..end).ok_or(Malformed)?);
            }
            body = end;
        }
        if body > payload.len() {
            return Err(Malformed);
        }
        if let Some(place) = self.row_number {
            values[place] = Value::Integer(number);
        }
        Ok(values)
    }
}

/// Bytes a value of that type takes; `None` for the types that do not exist.
#[inline]
fn size(kind: u64) -> Option<usize> {
    const FIXED: [usize; 10] = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];
    match kind {
        0..10 => Some(FIXED[kind as usize]),
        10 | 11 => None,
        _ => usize::try_from((kind - 12) / 2).ok(),
    }
}

#[inline]
fn value(kind: u64, bytes: &[u8]) -> Value<'_> {
    match kind {
        0 => Value::Null,
        1..=6 => Value::Integer(integer(bytes)),
        7 => Value::Real(f64::from_bits(integer(bytes) as u64)),
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        _ if kind.is_multiple_of(2) => Value::Blob(bytes),
        _ => Value::Text(bytes),
    }
}

/// A signed big-endian number of one to eight bytes.
#[inline]
fn integer(bytes: &[u8]) -> i64 {
    let first = bytes.first().map_or(0, |byte| i64::from(*byte as i8));
    bytes.iter().skip(1).fold(first, |number, byte| (number << 8) | i64::from(*byte))
}

/// A number of one to nine bytes, seven bits in each but the ninth, and where the next thing starts.
#[inline]
pub(crate) fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u64::from(first), at + 1));
    }
    let mut number = u64::from(first & 0x7f);
    for index in 1..8 {
        let byte = *bytes.get(at + index)?;
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((number, at + index + 1));
        }
    }
    let last = *bytes.get(at + 8)?;
    Some(((number << 8) | u64::from(last), at + 9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_takes_one_to_nine_bytes() {
        assert_eq!(varint(&[0x07], 0), Some((7, 1)));
        assert_eq!(varint(&[0x81, 0x00], 0), Some((128, 2)));
        assert_eq!(varint(&[0xff; 9], 0), Some((u64::MAX, 9)));
        assert_eq!(varint(&[0x00, 0x82, 0x2c], 1), Some((300, 3)));
        assert_eq!(varint(&[0xff; 8], 0), None);
        assert_eq!(varint(&[], 0), None);
    }

    #[test]
    fn numbers_of_every_width_keep_their_sign() {
        assert_eq!(integer(&[0xff]), -1);
        assert_eq!(integer(&[0x7f, 0xff]), 32_767);
        assert_eq!(integer(&[0x80, 0, 0]), -8_388_608);
        assert_eq!(integer(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]), -2);
        assert_eq!(integer(&i64::MIN.to_be_bytes()), i64::MIN);
    }

    #[test]
    fn a_row_gives_the_columns_asked_for_in_the_order_asked_for() {
        // Header: 6 bytes; null, one byte, text of two, constant one, text of one.
        let payload = [6, 0, 1, 17, 9, 15, 42, b'h', b'i', b'x'];
        let layout = Layout::new([Some(2), Some(1), Some(0), None, Some(3)], Some(0));
        let row = layout.decode(77, &payload).unwrap();
        assert_eq!(row, [Value::Text(b"hi"), Value::Integer(42), Value::Integer(77), Value::Null, Value::Integer(1)]);
    }

    #[test]
    fn a_column_added_later_is_null_in_older_rows() {
        let layout = Layout::new([Some(0), Some(5)], None);
        assert_eq!(layout.decode(1, &[2, 9]).unwrap(), [Value::Integer(1), Value::Null]);
    }

    #[test]
    fn a_row_that_ends_early_or_has_a_type_that_does_not_exist_is_malformed() {
        let layout = Layout::new([Some(0)], None);
        for payload in [&[][..], &[9, 1], &[2, 6, 0], &[2, 10], &[2, 11], &[2, 17, b'h'], &[0x83]] {
            assert_eq!(layout.decode(1, payload), Err(Malformed), "{payload:?}");
        }
    }
}
