//! The document around the events: an object with `traceEvents` among other fields in any order, or the bare list.

use super::events::Pause;
use super::header::Header;
use super::lexer::{Scan, Stop, member, peek, space, text, value};
use super::parallel::Plan;
use super::part::Part;
use super::source::Source;
use super::{Loss, LossReason};
use crate::IngestError;

const EXPECTED: &str = "a torch profiler trace";

/// What was read of a document.
pub(crate) struct Document {
    pub(crate) header: Header,
    pub(crate) part: Part,
    pub(crate) loss: Option<Loss>,
}

/// Reads a document to its end, or to where it stops being one.
pub(crate) fn read(file: &str, source: &mut impl Source, plan: Plan) -> Result<Document, IngestError> {
    let mut walk = Walk { file, source, plan, header: Header::default(), part: Part::new(), lists: 0, closed: 0 };
    let end = walk.document()?;
    let Walk { header, part, lists, .. } = walk;
    let loss = match end {
        End::Whole => None,
        End::Lost(loss) => Some(loss),
    };
    let refuse = |found: String| Err(IngestError::WrongFormat { file: file.to_owned(), expected: EXPECTED, found });
    if lists == 0 {
        return match loss {
            Some(Loss { offset, reason: LossReason::EndsEarly, .. }) => {
                let place = format!("byte {offset}");
                Err(IngestError::Damaged { file: file.to_owned(), place, reason: "ends before any events".to_owned() })
            }
            Some(Loss { offset, .. }) => refuse(format!("it is not valid JSON at byte {offset}, before any events")),
            None if header.names.is_empty() => refuse("it is an empty object".to_owned()),
            None => refuse(format!("it is an object with `{}` and no list `traceEvents`", header.names.join("`, `"))),
        };
    }
    let census = &part.census;
    if census.events() > 0 && !census.is_of_torch() {
        let unknown: u64 = census.unknown().map(|(_, count)| count).sum();
        return refuse(match unknown {
            0 => format!("none of its {} list elements is a span", census.events()),
            _ => format!("its spans have categories the torch profiler does not write: {}", census.examples()),
        });
    }
    Ok(Document { header, part, loss })
}

enum End {
    Whole,
    Lost(Loss),
}

struct Walk<'a, S> {
    file: &'a str,
    source: &'a mut S,
    plan: Plan,
    header: Header,
    part: Part,
    /// Lists of events that were opened, and those that were closed.
    lists: u32,
    closed: u32,
}

/// A scan of the window, for which more bytes are fetched as long as it asks for them.
enum Step<T> {
    Done(T),
    Lost(Loss),
}

impl<S: Source> Walk<'_, S> {
    fn document(&mut self) -> Result<End, IngestError> {
        // A byte order mark is no white space, and some editors leave one.
        let mut first = self.step(|window| peek(window, space(window, 0)))?;
        if matches!(first, Step::Done(0xef)) && self.source.window().starts_with(b"\xef\xbb\xbf") {
            self.source.consume(3);
            first = self.step(|window| peek(window, space(window, 0)))?;
        }
        match first {
            Step::Done(open @ (b'{' | b'[')) => {
                self.skip_space();
                self.source.consume(1);
                let end = if open == b'[' { self.list()? } else { self.object()? };
                match end {
                    End::Whole => self.nothing_follows(),
                    lost => Ok(lost),
                }
            }
            Step::Done(byte) => {
                let shown = char::from(byte).escape_default();
                let found = format!("it starts with `{shown}`, not with an object or a list");
                Err(IngestError::WrongFormat { file: self.file.to_owned(), expected: EXPECTED, found })
            }
            Step::Lost(_) => Err(IngestError::Empty { file: self.file.to_owned(), expected: EXPECTED }),
        }
    }

    /// The members of the document, whose brace has been read.
    fn object(&mut self) -> Result<End, IngestError> {
        let mut first = true;
        loop {
            let separator = self.step(|window| {
                let at = space(window, 0);
                match peek(window, at)? {
                    b'}' => Ok((at + 1, true)),
                    b',' if !first => Ok((at + 1, false)),
                    b'"' if first => Ok((at, false)),
                    _ => Err(Stop::Bad(at)),
                }
            })?;
            match separator {
                Step::Done((end, closed)) => {
                    self.source.consume(end);
                    if closed {
                        return Ok(End::Whole);
                    }
                }
                Step::Lost(loss) => return Ok(End::Lost(loss)),
            }
            first = false;
            // The name, and whether it opens a list of events: that one is too large to be taken as a value.
            let named = self.step(|window| {
                let start = space(window, 0);
                let (name, at) = member(window, start)?;
                let name = text(&window[start..name.end]).into_owned();
                let opens = peek(window, at)? == b'[' && name == "traceEvents";
                Ok((name, at, opens))
            })?;
            let (name, at, opens) = match named {
                Step::Done(named) => named,
                Step::Lost(loss) => return Ok(End::Lost(loss)),
            };
            self.source.consume(at);
            if opens {
                self.source.consume(1);
                match self.list()? {
                    End::Whole => continue,
                    lost => return Ok(lost),
                }
            }
            match self.step(|window| value(window, 0))? {
                Step::Done(end) => {
                    self.header.add(&name, &self.source.window()[..end], &mut self.part.census);
                    self.source.consume(end);
                }
                Step::Lost(loss) => return Ok(End::Lost(loss)),
            }
        }
    }

    /// The events of a list, whose bracket has been read.
    fn list(&mut self) -> Result<End, IngestError> {
        self.lists += 1;
        Ok(match self.source.events(self.plan, &mut self.part)? {
            Pause::Closed => {
                self.closed += 1;
                End::Whole
            }
            Pause::TooLarge => return Err(self.too_large()),
            Pause::More | Pause::Boundary => End::Lost(self.loss(LossReason::EndsEarly)),
            Pause::Bad(_) => End::Lost(self.loss(LossReason::NotJson)),
        })
    }

    fn nothing_follows(&mut self) -> Result<End, IngestError> {
        loop {
            self.skip_space();
            if !self.source.window().is_empty() {
                return Ok(End::Lost(self.loss(LossReason::Trailing)));
            }
            if !self.source.more()? {
                // A compressed file that is damaged behind the last byte of the document has lost nothing of it, but
                // whoever reads on should know.
                return Ok(if self.source.fault().is_some() {
                    End::Lost(self.loss(LossReason::EndsEarly))
                } else {
                    End::Whole
                });
            }
        }
    }

    fn skip_space(&mut self) {
        let at = space(self.source.window(), 0);
        self.source.consume(at);
    }

    fn step<T>(&mut self, scan: impl Fn(&[u8]) -> Scan<T>) -> Result<Step<T>, IngestError> {
        loop {
            let window = self.source.window();
            let bound = window.len().min(self.plan.largest.saturating_add(1));
            match scan(&window[..bound]) {
                Ok(done) => return Ok(Step::Done(done)),
                Err(Stop::More) if bound < window.len() => return Err(self.too_large()),
                Err(Stop::More) => {
                    if !self.source.more()? {
                        return Ok(Step::Lost(self.loss(LossReason::EndsEarly)));
                    }
                }
                Err(Stop::Bad(_)) => return Ok(Step::Lost(self.loss(LossReason::NotJson))),
            }
        }
    }

    fn too_large(&self) -> IngestError {
        let (file, limit) = (self.file.to_owned(), self.plan.largest as u64);
        IngestError::TooLarge { file, offset: self.source.offset(), limit }
    }

    fn loss(&self, reason: LossReason) -> Loss {
        Loss {
            offset: self.source.offset(),
            bytes: self.source.window().len() as u64,
            reason,
            in_events: self.lists > self.closed || self.lists == 0,
            cause: self.source.fault().map(str::to_owned),
        }
    }
}
