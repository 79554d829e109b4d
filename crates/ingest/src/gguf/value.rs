//! Values of the header. Long texts and lists, such as vocabularies, are passed over and counted.

use std::io::Read;

use super::source::Source;
use crate::IngestError;

/// Longest text that is kept.
const LONGEST_TEXT: u64 = 1 << 12;

/// Most numbers of a list that are kept: one for each layer.
const MOST_KEPT: u64 = 1 << 14;

/// A value of the header.
#[derive(Clone, Debug, PartialEq)]
pub enum GgufValue {
    /// A whole number.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// A text too long to keep.
    LongText,
    /// A list of numbers.
    List(Vec<GgufValue>),
    /// A list that is not kept, of so many.
    LongList(u64),
}

impl GgufValue {
    /// The number, where it is one that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }
}

const TEXT: u32 = 8;
const LIST: u32 = 9;

pub(super) fn read<R: Read>(source: &mut Source<'_, R>, what: &str) -> Result<GgufValue, IngestError> {
    let kind = source.u32(what)?;
    match kind {
        TEXT => {
            let length = source.u64(what)?;
            if length > LONGEST_TEXT {
                source.skip(length, what)?;
                return Ok(GgufValue::LongText);
            }
            source.text(length, what).map(GgufValue::Text)
        }
        LIST => list(source, what),
        kind => number(source, kind, what),
    }
}

fn list<R: Read>(source: &mut Source<'_, R>, what: &str) -> Result<GgufValue, IngestError> {
    let kind = source.u32(what)?;
    let count = source.u64(what)?;
    match kind {
        TEXT => {
            // Every text has a length of eight bytes, so the file bounds the loop.
            if count > source.left() / 8 {
                return Err(source.damaged(what, format!("a list of {count} strings, more than the file can hold")));
            }
            for _ in 0..count {
                let length = source.u64(what)?;
                source.skip(length, what)?;
            }
            Ok(GgufValue::LongList(count))
        }
        LIST => Err(source.damaged(what, "a list of lists, which is not supported")),
        kind => {
            let each = width(kind).ok_or_else(|| unknown(source, kind, what))?;
            if count <= MOST_KEPT {
                let numbers = (0..count).map(|_| number(source, kind, what)).collect::<Result<_, _>>()?;
                return Ok(GgufValue::List(numbers));
            }
            let bytes = count.checked_mul(each);
            let bytes = bytes.ok_or_else(|| {
                source.damaged(what, format!("a list of {count} numbers, more than the file can hold"))
            })?;
            source.skip(bytes, what)?;
            Ok(GgufValue::LongList(count))
        }
    }
}

/// Bytes of a number of that kind.
fn width(kind: u32) -> Option<u64> {
    Some(match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        _ => return None,
    })
}

fn number<R: Read>(source: &mut Source<'_, R>, kind: u32, what: &str) -> Result<GgufValue, IngestError> {
    let integer = |number: i128| Ok(GgufValue::Integer(number));
    match kind {
        0 => integer(u8::from_le_bytes(source.array(what)?).into()),
        1 => integer(i8::from_le_bytes(source.array(what)?).into()),
        2 => integer(u16::from_le_bytes(source.array(what)?).into()),
        3 => integer(i16::from_le_bytes(source.array(what)?).into()),
        4 => integer(u32::from_le_bytes(source.array(what)?).into()),
        5 => integer(i32::from_le_bytes(source.array(what)?).into()),
        6 => Ok(GgufValue::Float(f32::from_le_bytes(source.array(what)?).into())),
        7 => Ok(GgufValue::Bool(source.array::<1>(what)? != [0])),
        10 => integer(u64::from_le_bytes(source.array(what)?).into()),
        11 => integer(i64::from_le_bytes(source.array(what)?).into()),
        12 => Ok(GgufValue::Float(f64::from_le_bytes(source.array(what)?))),
        kind => Err(unknown(source, kind, what)),
    }
}

fn unknown<R: Read>(source: &Source<'_, R>, kind: u32, what: &str) -> IngestError {
    source.damaged(what, format!("unknown value type {kind}; expected 0 to 12"))
}
