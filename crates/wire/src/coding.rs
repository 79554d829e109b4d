//! How each record is written and read: a table of tags and fields.

use crate::number::{Input, Output};
use crate::record::{Counter, Name, Place, Record, Shape, Span};

/// What records of a block are relative to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Base {
    host: u64,
    device: u64,
    correlation: u32,
}

/// A field of a record.
trait Field<'a>: Sized {
    fn put(self, output: &mut Output<'_>, base: &mut Base);
    fn get(input: &mut Input<'a>, base: &mut Base) -> Option<Self>;
}

/// Fields that are relative to nothing.
macro_rules! plain {
    ($($field:ty: |$output:ident, $value:ident| $put:expr, |$input:ident| $get:expr;)+) => {
        $(impl<'a> Field<'a> for $field {
            fn put(self, $output: &mut Output<'_>, _: &mut Base) {
                let $value = self;
                $put;
            }

            fn get($input: &mut Input<'a>, _: &mut Base) -> Option<Self> {
                $get
            }
        })+
    };
}

plain! {
    u8: |output, value| output.byte(value), |input| input.byte();
    bool: |output, value| output.byte(u8::from(value)), |input| Some(input.byte()? != 0);
    u32: |output, value| output.number(u64::from(value)), |input| input.narrow();
    u64: |output, value| output.number(value), |input| input.number();
    [u8; 16]: |output, value| output.bytes(&value), |input| input.take(16)?.try_into().ok();
    Counter: |output, value| output.number(u64::from(value.number())), |input| Some(Self::of(input.narrow()?));
    // The last field of a record.
    &'a [u8]: |output, value| output.bytes(value.get(..crate::LONGEST_TEXT).unwrap_or(value)), |input| Some(input.rest());
    Name: |output, name| output.number(match name {
        Self::Text(number) => u64::from(number) << 1,
        Self::Registered(number) => u64::from(number) << 1 | 1,
    }), |input| {
        let packed = input.number()?;
        let number = u32::try_from(packed >> 1).ok()?;
        Some(if packed & 1 == 0 { Self::Text(number) } else { Self::Registered(number) })
    };
    Shape: |output, shape| for size in shape.grid.into_iter().chain(shape.block).chain([shape.registers, shape.shared_static, shape.shared_dynamic]) {
        output.number(u64::from(size));
    }, |input| {
        let mut three = || Some([input.narrow()?, input.narrow()?, input.narrow()?]);
        let (grid, block, [registers, shared_static, shared_dynamic]) = (three()?, three()?, three()?);
        Some(Self { grid, block, registers, shared_static, shared_dynamic })
    };
}

/// A time on the host.
struct Host(u64);

impl Field<'_> for Host {
    fn put(self, output: &mut Output<'_>, base: &mut Base) {
        output.signed(self.0.wrapping_sub(base.host) as i64);
        base.host = self.0;
    }

    fn get(input: &mut Input<'_>, base: &mut Base) -> Option<Self> {
        base.host = base.host.wrapping_add(input.signed()? as u64);
        Some(Self(base.host))
    }
}

/// The number of a call.
struct Call(u32);

impl Field<'_> for Call {
    fn put(self, output: &mut Output<'_>, base: &mut Base) {
        output.signed(i64::from(self.0.wrapping_sub(base.correlation) as i32));
        base.correlation = self.0;
    }

    fn get(input: &mut Input<'_>, base: &mut Base) -> Option<Self> {
        base.correlation = base.correlation.wrapping_add(i32::try_from(input.signed()?).ok()? as u32);
        Some(Self(base.correlation))
    }
}

/// When a call lasted.
impl Field<'_> for Span {
    fn put(self, output: &mut Output<'_>, base: &mut Base) {
        Host(self.start).put(output, base);
        output.number(self.duration);
    }

    fn get(input: &mut Input<'_>, base: &mut Base) -> Option<Self> {
        Some(Self { start: Host::get(input, base)?.0, duration: input.number()? })
    }
}

impl Field<'_> for Place {
    fn put(self, output: &mut Output<'_>, base: &mut Base) {
        for number in [self.device, self.context, self.stream] {
            output.number(u64::from(number));
        }
        Call(self.correlation).put(output, base);
        output.number(self.node);
        output.signed(self.span.start.wrapping_sub(base.device) as i64);
        output.number(self.span.duration);
        base.device = self.span.start;
    }

    fn get(input: &mut Input<'_>, base: &mut Base) -> Option<Self> {
        let (device, context, stream) = (input.narrow()?, input.narrow()?, input.narrow()?);
        let (correlation, node) = (Call::get(input, base)?.0, input.number()?);
        base.device = base.device.wrapping_add(input.signed()? as u64);
        let span = Span { start: base.device, duration: input.number()? };
        Some(Self { device, context, stream, correlation, node, span })
    }
}

/// Fields that are not what their tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Tags, and the fields behind them in their order; those in brackets are written as another type.
macro_rules! records {
    ($($tag:literal $name:ident { $($field:ident $(($as:ident))?),* })+) => {
        impl<'a> Record<'a> {
            /// Writes the fields, and gives the tag; whether they fit is known to the output.
            pub(crate) fn put(&self, fields: &mut Output<'_>, base: &mut Base) -> u8 {
                match *self {
                    $(Self::$name { $($field),* } => {
                        $(Field::put($($as)?($field), fields, base);)*
                        $tag
                    })+
                    // A byte that is kept free for what else there may be to say.
                    Self::Finish => {
                        fields.byte(0);
                        22
                    }
                }
            }

            /// Reads the fields of a record; `Ok(None)` for a tag of a newer writer, an error where the fields are none.
            pub(crate) fn get(tag: u8, mut fields: Input<'a>, base: &mut Base) -> Result<Option<Self>, Malformed> {
                let mut record = || {
                    Some(Some(match tag {
                        $($tag => Self::$name { $($field: records!(@get $($as)? fields base)),* },)+
                        22 => fields.byte().map(|_| Self::Finish)?,
                        _ => return Some(None),
                    }))
                };
                record().ok_or(Malformed)
            }
        }
    };
    (@get $fields:ident $base:ident) => { Field::get(&mut $fields, $base)? };
    (@get $as:ident $fields:ident $base:ident) => { $as::get(&mut $fields, $base)?.0 };
}

records! {
    1 Process { process, parent, name }
    2 Collector { cupti, version }
    3 Problem { code, what }
    4 Clocks { monotonic, wall, device }
    5 Device { ordinal, memory, uuid, name }
    6 Text { number, text }
    7 Domain { number, text }
    8 Registered { number, text }
    9 Thread { thread }
    10 Push { domain, depth, time(Host), name }
    11 Pop { domain, depth, time(Host) }
    12 Start { domain, handle, time(Host), name }
    13 End { handle, time(Host) }
    14 Call { function, correlation(Call), span }
    15 Node { node, original, time(Host) }
    16 Window { open, time(Host) }
    17 Kernel { name, place, shape }
    18 Copy { direction, bytes, place }
    19 Memset { bytes, place }
    20 Graph { graph, place }
    21 Count { counter, value }
    23 Rank { rank, world }
    24 GraphsOnly {}
}
