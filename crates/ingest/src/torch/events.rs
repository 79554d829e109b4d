//! The list of events: one after the other out of a stretch of bytes into a [`Part`].

use super::census::Fault;
use super::event::Event;
use super::lexer::{Scan, Stop, peek, space, value};
use super::part::Part;

/// What may come next in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// An event, or the end of the list.
    Event,
    /// A comma, or the end of the list.
    Comma,
}

/// Why scanning paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// The next event starts at or after the place where to stop.
    Boundary,
    /// The list is closed; the place is after its bracket.
    Closed,
    /// The bytes end before the event that starts here does.
    More,
    /// The event that starts here is larger than the bound.
    TooLarge,
    /// The event that starts here is no JSON; the place that shows it.
    Bad(usize),
}

/// Where scanning stands: everything before `at` has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) at: usize,
    pub(crate) expect: Expectation,
    pub(crate) pause: Pause,
}

/// Reads events from `at` on until the next one starts at or after `stop`.
pub(crate) fn scan(
    bytes: &[u8],
    at: usize,
    expect: Expectation,
    stop: usize,
    largest: usize,
    part: &mut Part,
) -> Progress {
    let (mut at, mut expect) = (at, expect);
    loop {
        at = space(bytes, at);
        let pause = |pause| Progress { at, expect, pause };
        let Some(byte) = bytes.get(at) else { return pause(Pause::More) };
        match (expect, byte) {
            (_, b']') => return Progress { at: at + 1, expect, pause: Pause::Closed },
            (Expectation::Comma, b',') => {
                at += 1;
                expect = Expectation::Event;
            }
            (Expectation::Comma, _) => return pause(Pause::Bad(at)),
            (Expectation::Event, _) if at >= stop => return pause(Pause::Boundary),
            (Expectation::Event, _) => {
                // The bound is one byte more than the largest event, so that one that fits is seen to end.
                let bound = bytes.len().min(at.saturating_add(largest).saturating_add(1));
                match element(&bytes[..bound], at, part) {
                    Ok(end) => at = end,
                    Err(Stop::More) if bound < bytes.len() => return pause(Pause::TooLarge),
                    Err(Stop::More) => return pause(Pause::More),
                    Err(Stop::Bad(place)) => return pause(Pause::Bad(place)),
                }
                expect = Expectation::Comma;
            }
        }
    }
}

#[inline]
fn element(bytes: &[u8], at: usize, part: &mut Part) -> Scan<usize> {
    if peek(bytes, at)? == b'{' {
        let mut event = Event::default();
        let end = event.scan(bytes, at)?;
        part.add(&event);
        Ok(end)
    } else {
        let end = value(bytes, at)?;
        part.census.add_fault(Fault::NotAnEvent);
        Ok(end)
    }
}

/// The first place from `from` on, before `until`, that looks like the beginning of an event behind another one: `}`, a
/// comma, `{` and a quote, with any white space between. The same bytes can stand inside a text, so it is only a guess.
pub(crate) fn guess(bytes: &[u8], from: usize, until: usize) -> Option<usize> {
    let before = |mut at: usize| loop {
        at = at.checked_sub(1)?;
        if !matches!(bytes[at], b' ' | b'\n' | b'\r' | b'\t') {
            return Some(at);
        }
    };
    memchr::memchr_iter(b'{', bytes.get(from..until)?).map(|found| from + found).find(|brace| {
        let comma = before(*brace).filter(|at| bytes[*at] == b',');
        let closed = comma.and_then(before).is_some_and(|at| bytes[at] == b'}');
        closed && bytes.get(space(bytes, brace + 1)) == Some(&b'"')
    })
}
