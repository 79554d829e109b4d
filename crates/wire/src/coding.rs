//! How each record is written and read.

use crate::number::{Input, Output};
use crate::record::{Counter, Name, Place, Record, Shape, Span};

/// What records of a block are relative to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Base {
    host: u64,
    device: u64,
    correlation: u32,
}

impl Base {
    fn put_host(&mut self, output: &mut Output<'_>, time: u64) {
        output.signed(time.wrapping_sub(self.host) as i64);
        self.host = time;
    }

    fn get_host(&mut self, input: &mut Input<'_>) -> Option<u64> {
        self.host = self.host.wrapping_add(input.signed()? as u64);
        Some(self.host)
    }

    fn put_correlation(&mut self, output: &mut Output<'_>, correlation: u32) {
        output.signed(i64::from(correlation.wrapping_sub(self.correlation) as i32));
        self.correlation = correlation;
    }

    fn get_correlation(&mut self, input: &mut Input<'_>) -> Option<u32> {
        self.correlation = self.correlation.wrapping_add(i32::try_from(input.signed()?).ok()? as u32);
        Some(self.correlation)
    }

    fn put_place(&mut self, output: &mut Output<'_>, place: &Place) {
        output.number(u64::from(place.device));
        output.number(u64::from(place.context));
        output.number(u64::from(place.stream));
        self.put_correlation(output, place.correlation);
        output.number(place.node);
        output.signed(place.span.start.wrapping_sub(self.device) as i64);
        output.number(place.span.duration);
        self.device = place.span.start;
    }

    fn get_place(&mut self, input: &mut Input<'_>) -> Option<Place> {
        let (device, context, stream) = (input.narrow()?, input.narrow()?, input.narrow()?);
        let correlation = self.get_correlation(input)?;
        let node = input.number()?;
        self.device = self.device.wrapping_add(input.signed()? as u64);
        let span = Span { start: self.device, duration: input.number()? };
        Some(Place { device, context, stream, correlation, node, span })
    }
}

fn put_name(output: &mut Output<'_>, name: Name) {
    match name {
        Name::Text(number) => output.number(u64::from(number) << 1),
        Name::Registered(number) => output.number(u64::from(number) << 1 | 1),
    }
}

fn get_name(input: &mut Input<'_>) -> Option<Name> {
    let packed = input.number()?;
    let number = u32::try_from(packed >> 1).ok()?;
    Some(if packed & 1 == 0 { Name::Text(number) } else { Name::Registered(number) })
}

fn text(text: &[u8]) -> &[u8] {
    text.get(..crate::LONGEST_TEXT).unwrap_or(text)
}

impl<'a> Record<'a> {
    const fn tag(&self) -> u8 {
        match self {
            Self::Process { .. } => 1,
            Self::Collector { .. } => 2,
            Self::Problem { .. } => 3,
            Self::Clocks { .. } => 4,
            Self::Device { .. } => 5,
            Self::Text { .. } => 6,
            Self::Domain { .. } => 7,
            Self::Registered { .. } => 8,
            Self::Thread { .. } => 9,
            Self::Push { .. } => 10,
            Self::Pop { .. } => 11,
            Self::Start { .. } => 12,
            Self::End { .. } => 13,
            Self::Call { .. } => 14,
            Self::Node { .. } => 15,
            Self::Window { .. } => 16,
            Self::Kernel { .. } => 17,
            Self::Copy { .. } => 18,
            Self::Memset { .. } => 19,
            Self::Graph { .. } => 20,
            Self::Count { .. } => 21,
            Self::Finish => 22,
            Self::Rank { .. } => 23,
            Self::GraphsOnly => 24,
        }
    }

    /// Writes tag, length and fields; whether they fit is known to the output.
    pub(crate) fn put(&self, fields: &mut Output<'_>, base: &mut Base) -> u8 {
        match *self {
            Self::Process { process, parent, name } => {
                fields.number(u64::from(process));
                fields.number(u64::from(parent));
                fields.bytes(text(name));
            }
            Self::Collector { cupti, version } => {
                fields.number(u64::from(cupti));
                fields.bytes(text(version));
            }
            Self::Problem { code, what } => {
                fields.number(u64::from(code));
                fields.bytes(text(what));
            }
            Self::Clocks { monotonic, wall, device } => {
                for clock in [monotonic, wall, device] {
                    fields.number(clock);
                }
            }
            Self::Device { ordinal, memory, uuid, name } => {
                fields.number(u64::from(ordinal));
                fields.number(memory);
                fields.bytes(&uuid);
                fields.bytes(text(name));
            }
            Self::Text { number, text: contents }
            | Self::Domain { number, text: contents }
            | Self::Registered { number, text: contents } => {
                fields.number(u64::from(number));
                fields.bytes(text(contents));
            }
            Self::Thread { thread } => fields.number(u64::from(thread)),
            Self::Push { domain, depth, time, name } => {
                fields.number(u64::from(domain));
                fields.number(u64::from(depth));
                base.put_host(fields, time);
                put_name(fields, name);
            }
            Self::Pop { domain, depth, time } => {
                fields.number(u64::from(domain));
                fields.number(u64::from(depth));
                base.put_host(fields, time);
            }
            Self::Start { domain, handle, time, name } => {
                fields.number(u64::from(domain));
                fields.number(handle);
                base.put_host(fields, time);
                put_name(fields, name);
            }
            Self::End { handle, time } => {
                fields.number(handle);
                base.put_host(fields, time);
            }
            Self::Call { function, correlation, span } => {
                fields.number(u64::from(function));
                base.put_correlation(fields, correlation);
                base.put_host(fields, span.start);
                fields.number(span.duration);
            }
            Self::Node { node, original, time } => {
                fields.number(node);
                fields.number(original);
                base.put_host(fields, time);
            }
            Self::Window { open, time } => {
                fields.byte(u8::from(open));
                base.put_host(fields, time);
            }
            Self::Kernel { name, place, shape } => {
                fields.number(u64::from(name));
                base.put_place(fields, &place);
                for size in shape.grid.into_iter().chain(shape.block) {
                    fields.number(u64::from(size));
                }
                for size in [shape.registers, shape.shared_static, shape.shared_dynamic] {
                    fields.number(u64::from(size));
                }
            }
            Self::Copy { direction, bytes, place } => {
                fields.byte(direction);
                fields.number(bytes);
                base.put_place(fields, &place);
            }
            Self::Memset { bytes, place } => {
                fields.number(bytes);
                base.put_place(fields, &place);
            }
            Self::Graph { graph, place } => {
                fields.number(u64::from(graph));
                base.put_place(fields, &place);
            }
            Self::Count { counter, value } => {
                fields.number(u64::from(counter.number()));
                fields.number(value);
            }
            Self::Rank { rank, world } => {
                fields.number(u64::from(rank));
                fields.number(u64::from(world));
            }
            // A byte that is kept free for what else there may be to say.
            Self::Finish | Self::GraphsOnly => fields.byte(0),
        }
        self.tag()
    }

    /// Reads the fields of a record; `Ok(None)` for a tag of a newer writer, an error where the fields are none.
    pub(crate) fn get(tag: u8, mut fields: Input<'a>, base: &mut Base) -> Result<Option<Self>, Malformed> {
        let fields = &mut fields;
        let record = || -> Option<Option<Self>> {
            Some(Some(match tag {
                1 => Self::Process { process: fields.narrow()?, parent: fields.narrow()?, name: fields.rest() },
                2 => Self::Collector { cupti: fields.narrow()?, version: fields.rest() },
                3 => Self::Problem { code: fields.narrow()?, what: fields.rest() },
                4 => Self::Clocks { monotonic: fields.number()?, wall: fields.number()?, device: fields.number()? },
                5 => {
                    let (ordinal, memory) = (fields.narrow()?, fields.number()?);
                    let uuid = fields.take(16)?.try_into().ok()?;
                    Self::Device { ordinal, memory, uuid, name: fields.rest() }
                }
                6 => Self::Text { number: fields.narrow()?, text: fields.rest() },
                7 => Self::Domain { number: fields.narrow()?, text: fields.rest() },
                8 => Self::Registered { number: fields.narrow()?, text: fields.rest() },
                9 => Self::Thread { thread: fields.narrow()? },
                10 => {
                    let (domain, depth, time) = (fields.narrow()?, fields.narrow()?, base.get_host(fields)?);
                    Self::Push { domain, depth, time, name: get_name(fields)? }
                }
                11 => {
                    let (domain, depth) = (fields.narrow()?, fields.narrow()?);
                    Self::Pop { domain, depth, time: base.get_host(fields)? }
                }
                12 => {
                    let (domain, handle, time) = (fields.narrow()?, fields.number()?, base.get_host(fields)?);
                    Self::Start { domain, handle, time, name: get_name(fields)? }
                }
                13 => Self::End { handle: fields.number()?, time: base.get_host(fields)? },
                14 => {
                    let (function, correlation) = (fields.narrow()?, base.get_correlation(fields)?);
                    let span = Span { start: base.get_host(fields)?, duration: fields.number()? };
                    Self::Call { function, correlation, span }
                }
                15 => {
                    let (node, original) = (fields.number()?, fields.number()?);
                    Self::Node { node, original, time: base.get_host(fields)? }
                }
                16 => Self::Window { open: fields.byte()? != 0, time: base.get_host(fields)? },
                17 => {
                    let (name, place) = (fields.narrow()?, base.get_place(fields)?);
                    let mut three = || Some([fields.narrow()?, fields.narrow()?, fields.narrow()?]);
                    let (grid, block, [registers, shared_static, shared_dynamic]) = (three()?, three()?, three()?);
                    let shape = Shape { grid, block, registers, shared_static, shared_dynamic };
                    Self::Kernel { name, place, shape }
                }
                18 => {
                    let (direction, bytes) = (fields.byte()?, fields.number()?);
                    Self::Copy { direction, bytes, place: base.get_place(fields)? }
                }
                19 => Self::Memset { bytes: fields.number()?, place: base.get_place(fields)? },
                20 => Self::Graph { graph: fields.narrow()?, place: base.get_place(fields)? },
                21 => Self::Count { counter: Counter::of(fields.narrow()?), value: fields.number()? },
                22 => {
                    fields.byte()?;
                    Self::Finish
                }
                23 => Self::Rank { rank: fields.narrow()?, world: fields.narrow()? },
                24 => {
                    fields.byte()?;
                    Self::GraphsOnly
                }
                _ => return Some(None),
            }))
        };
        let mut record = record;
        record().ok_or(Malformed)
    }
}

/// Fields that are not what their tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;
