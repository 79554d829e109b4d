//! Server-sent events, cut anywhere by the network (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
//!
//! Only `data` fields matter to a load. Lines end with LF or CRLF; a lone CR, which no server sends, ends none.

use thiserror::Error;

/// The longest event: a thousand times what servers send.
const LONGEST: usize = 16 << 20;

/// A server that sends no end of an event.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("an event is longer than 16 MiB")]
pub(crate) struct EventTooLong;

/// The events of one stream.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The line that has not ended.
    line: Vec<u8>,
    /// Data of the event that has not ended; every line of it ends with LF.
    data: Vec<u8>,
}

impl Events {
    /// Adds bytes and calls `each` with the data of every event that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), EventTooLong> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.end_line(&mut each);
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() + self.data.len() > LONGEST { Err(EventTooLong) } else { Ok(()) }
    }

    /// The stream ended. Some servers send no empty line after the last event.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(&[u8])) {
        self.end_line(&mut each);
        self.end_event(&mut each);
    }

    /// Reads the line that ended.
    fn end_line(&mut self, each: &mut impl FnMut(&[u8])) {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        if let Some(data) = line.strip_prefix(b"data:") {
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.data.push(b'\n');
        } else if line.is_empty() {
            self.end_event(each);
        }
        self.line.clear();
    }

    /// Passes on the event that ended; one without data is none.
    fn end_event(&mut self, each: &mut impl FnMut(&[u8])) {
        if let Some((_, data)) = self.data.split_last() {
            each(data);
        }
        self.data.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The events of a stream that arrives in these pieces.
    fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let (mut events, mut found) = (Events::default(), Vec::new());
        let mut keep = |data: &[u8]| found.push(String::from_utf8(data.to_vec()).unwrap());
        pieces.into_iter().for_each(|piece| events.push(piece, &mut keep).unwrap());
        events.finish(&mut keep);
        found
    }

    const STREAM: &str = ": ping\n\ndata: {\"text\": \"ä€😀\"}\n\n:keep-alive\r\n\r\nevent: x\r\nid: 1\r\ndata:{}\r\n\r\n\
                          data: a\ndata: b\n\nretry: 3\n\ndata: [DONE]";

    #[test]
    fn events_are_their_data() {
        assert_eq!(events([STREAM.as_bytes()]), ["{\"text\": \"ä€😀\"}", "{}", "a\nb", "[DONE]"]);
        assert_eq!(events([b"data\n\ndata:\n\n".as_slice()]), [""]);
        assert_eq!(events([]), Vec::<String>::new());
    }

    #[test]
    fn an_event_without_end_is_given_up() {
        let (mut events, piece) = (Events::default(), vec![b'a'; 1 << 20]);
        assert!((0..16).all(|_| events.push(&piece, |_| ()).is_ok()));
        assert_eq!(events.push(&piece, |_| ()), Err(EventTooLong));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_events(mut cuts in prop::collection::vec(0..=STREAM.len(), 0..20)) {
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &STREAM.as_bytes()[pair[0]..pair[1]]);
            prop_assert_eq!(events(pieces), events([STREAM.as_bytes()]));
        }

        #[test]
        fn any_bytes_and_any_cut_give_the_same_events(bytes in prop::collection::vec(
            prop::sample::select(b"data: \r\n:x\xc3\xa4".to_vec()), 0..200), cut in 0usize..200) {
            let found = |pieces: [&[u8]; 2]| {
                let (mut events, mut found) = (Events::default(), Vec::new());
                pieces.iter().for_each(|piece| events.push(piece, |data| found.push(data.to_vec())).unwrap());
                events.finish(|data| found.push(data.to_vec()));
                found
            };
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(found([first, second]), found([&bytes, b""]));
        }
    }
}
