//! One event of a trace: the tokens of the fields that are read, found in any order among any others.
//!
//! Which fields matter depends on the category, which may come last; so all are noted and none is interpreted. A field that
//! comes twice counts as it came last.

use super::lexer::{Scan, Stop, inside, member, peek, space, text, value};

/// The tokens of one event as they stand in the text, strings with their quotes. Absent fields are empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event<'a> {
    pub(crate) phase: &'a [u8],
    pub(crate) category: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) process: &'a [u8],
    pub(crate) thread: &'a [u8],
    pub(crate) time: &'a [u8],
    pub(crate) duration: &'a [u8],
    pub(crate) arguments: Arguments<'a>,
}

/// The tokens of an event's `args`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arguments<'a> {
    pub(crate) external_id: &'a [u8],
    pub(crate) correlation: &'a [u8],
    pub(crate) device: &'a [u8],
    pub(crate) context: &'a [u8],
    pub(crate) stream: &'a [u8],
    pub(crate) registers: &'a [u8],
    pub(crate) shared_memory: &'a [u8],
    pub(crate) grid: &'a [u8],
    pub(crate) block: &'a [u8],
    pub(crate) graph_node: &'a [u8],
    pub(crate) bytes: &'a [u8],
    pub(crate) device_type: &'a [u8],
    pub(crate) allocated: &'a [u8],
    pub(crate) reserved: &'a [u8],
    pub(crate) shapes: &'a [u8],
    pub(crate) types: &'a [u8],
    pub(crate) strides: &'a [u8],
    pub(crate) values: &'a [u8],
    pub(crate) collective: &'a [u8],
    pub(crate) input_elements: &'a [u8],
    pub(crate) output_elements: &'a [u8],
    pub(crate) group_size: &'a [u8],
    pub(crate) group: &'a [u8],
    pub(crate) members: &'a [u8],
    pub(crate) element_type: &'a [u8],
}

impl<'a> Event<'a> {
    /// Scans the event whose brace is at `at` into this one, which is empty, and gives back the place after it.
    #[inline]
    pub(crate) fn scan(&mut self, bytes: &'a [u8], at: usize) -> Scan<usize> {
        let mut has_arguments = false;
        members(bytes, at, |name, start| {
            if name == b"args" && peek(bytes, start)? == b'{' {
                if std::mem::replace(&mut has_arguments, true) {
                    self.arguments = Arguments::default();
                }
                return members(bytes, start, |name, start| {
                    let end = value(bytes, start)?;
                    if let Some(place) = self.arguments.place(name) {
                        *place = &bytes[start..end];
                    }
                    Ok(end)
                });
            }
            let end = value(bytes, start)?;
            if let Some(place) = self.place(name) {
                *place = &bytes[start..end];
            }
            Ok(end)
        })
    }

    fn place(&mut self, name: &[u8]) -> Option<&mut &'a [u8]> {
        Some(match name {
            b"ph" => &mut self.phase,
            b"cat" => &mut self.category,
            b"name" => &mut self.name,
            b"pid" => &mut self.process,
            b"tid" => &mut self.thread,
            b"ts" => &mut self.time,
            b"dur" => &mut self.duration,
            _ => return None,
        })
    }
}

impl<'a> Arguments<'a> {
    fn place(&mut self, name: &[u8]) -> Option<&mut &'a [u8]> {
        Some(match name {
            b"External id" | b"external id" => &mut self.external_id,
            b"correlation" => &mut self.correlation,
            b"device" | b"Device Id" => &mut self.device,
            b"context" => &mut self.context,
            b"stream" => &mut self.stream,
            b"registers per thread" => &mut self.registers,
            b"shared memory" => &mut self.shared_memory,
            b"grid" => &mut self.grid,
            b"block" => &mut self.block,
            b"graph node id" => &mut self.graph_node,
            b"bytes" | b"Bytes" => &mut self.bytes,
            b"Device Type" => &mut self.device_type,
            b"Total Allocated" => &mut self.allocated,
            b"Total Reserved" => &mut self.reserved,
            b"Input Dims" => &mut self.shapes,
            b"Input type" => &mut self.types,
            b"Input Strides" => &mut self.strides,
            b"Concrete Inputs" => &mut self.values,
            b"Collective name" => &mut self.collective,
            b"In msg nelems" => &mut self.input_elements,
            b"Out msg nelems" => &mut self.output_elements,
            b"Group size" => &mut self.group_size,
            b"Process Group Description" => &mut self.group,
            b"Process Group Ranks" => &mut self.members,
            b"dtype" => &mut self.element_type,
            _ => return None,
        })
    }
}

/// Scans the object whose brace is at `at`: `each` gets the name of every member and the place its value starts, and
/// gives back the value's end.
#[inline]
fn members(bytes: &[u8], at: usize, mut each: impl FnMut(&[u8], usize) -> Scan<usize>) -> Scan<usize> {
    let mut at = space(bytes, at + 1);
    if peek(bytes, at)? == b'}' {
        return Ok(at + 1);
    }
    loop {
        let (name, start) = member(bytes, at)?;
        let end = if name.escaped {
            each(text(&bytes[at..name.end]).as_bytes(), start)?
        } else {
            each(&bytes[at + 1..name.end - 1], start)?
        };
        at = space(bytes, end);
        match peek(bytes, at)? {
            b',' => at = space(bytes, at + 1),
            b'}' => return Ok(at + 1),
            _ => return Err(Stop::Bad(at)),
        }
    }
}

impl Event<'_> {
    /// The letter of the phase, where it is one.
    pub(crate) fn phase(&self) -> Option<u8> {
        match inside(self.phase) {
            [letter] => Some(*letter),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_any_order_and_the_last_of_a_name_counts() {
        let json =
            br#"{ "x":{"ph":"B"},"args" : {"Input Dims":[[1,2],[]],"ts":9},"\u0074s":1.5, "ph":"i","ph":"X"}tail"#;
        let mut event = Event::default();
        let end = event.scan(json, 0).unwrap();
        assert_eq!(&json[end..], b"tail");
        assert_eq!((event.time, event.phase()), (&b"1.5"[..], Some(b'X')));
        assert_eq!(event.arguments.shapes, b"[[1,2],[]]");
        assert!(event.name.is_empty());
    }

    #[test]
    fn an_event_cut_anywhere_asks_for_more() {
        let json = br#"{"ph": "X", "name": "a \" b", "args": {"grid": [1, 2, 3], "y": {}}, "ts": 12}"#;
        for length in 1..json.len() {
            assert_eq!(Event::default().scan(&json[..length], 0).unwrap_err(), Stop::More, "{length} bytes");
        }
        assert!(Event::default().scan(json, 0).is_ok());
    }

    #[test]
    fn a_missing_comma_is_found_where_it_is_missing() {
        assert_eq!(Event::default().scan(br#"{"a": 1 "b": 2}"#, 0).unwrap_err(), Stop::Bad(8));
        assert_eq!(Event::default().scan(br#"{"a": 1, }"#, 0).unwrap_err(), Stop::Bad(9));
        assert_eq!(Event::default().scan(br#"{"args": {1: 2}}"#, 0).unwrap_err(), Stop::Bad(10));
    }
}
