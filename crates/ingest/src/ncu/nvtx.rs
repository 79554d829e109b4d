//! The columns with the NVTX ranges that were open at a launch.
//!
//! `467  "<default domain>:A:none:none:none:none:none:none"  "<default domain>:A1:none:..."`: a thread, then its ranges
//! from the outermost in. A range is domain, name and six fields about payload, colour and message. Names may contain
//! colons (`cub::DeviceScan`), so the six are recognised by their words and not by counting from one side.

use types::counter::OpenRange;

use super::texts::Texts;

enum Token<'a> {
    Word(&'a str),
    Quoted(&'a str),
}

/// Ranges of the push/pop column.
pub(super) fn pushed(cell: &str, texts: &mut Texts) -> Vec<OpenRange> {
    let mut owner = None;
    let mut ranges = Vec::new();
    let mut rest = cell.trim_start();
    while !rest.is_empty() {
        let (token, after) = token(rest);
        match token {
            Token::Quoted(range) => ranges.push(open_range(range, owner, texts)),
            Token::Word(thread) => owner = thread.parse().ok(),
        }
        rest = after.trim_start();
    }
    ranges
}

/// Ranges of the start/stop column, each with its handle first.
pub(super) fn started(cell: &str, texts: &mut Texts) -> Vec<OpenRange> {
    let mut ranges = Vec::new();
    let mut rest = cell.trim_start();
    while !rest.is_empty() {
        let (token, after) = token(rest);
        let (Token::Quoted(range) | Token::Word(range)) = token;
        let handle = range.split_once(':').and_then(|(handle, range)| Some((handle.parse().ok()?, range)));
        ranges.push(match handle {
            Some((handle, range)) => open_range(range, Some(handle), texts),
            None => open_range(range, None, texts),
        });
        rest = after.trim_start();
    }
    ranges
}

/// The first word or quoted text, and what follows. A quote closes where a space or nothing stands behind it.
fn token(text: &str) -> (Token<'_>, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        return (Token::Word(word), rest);
    };
    let closes = |(_, rest): &(&str, &str)| rest.is_empty() || rest.starts_with(' ');
    let mut ends = quoted.match_indices('"').map(|(at, _)| (&quoted[..at], &quoted[at + 1..]));
    let (range, rest) = ends.find(closes).unwrap_or((quoted, ""));
    (Token::Quoted(range), rest)
}

fn open_range(text: &str, owner: Option<u64>, texts: &mut Texts) -> OpenRange {
    let (domain, rest) = text.split_once(':').unwrap_or(("", text));
    let domain = (!domain.is_empty() && domain != "<default domain>").then(|| texts.share(domain));
    OpenRange { owner, domain, name: texts.share(name(rest)) }
}

/// The name before payload type and value, colour type and value, message type and message.
fn name(text: &str) -> &str {
    const PAYLOADS: [&str; 8] = ["none", "unknown", "uint64", "int64", "uint32", "int32", "float", "double"];
    const COLORS: [&str; 4] = ["none", "unknown", "argb", "rgb"];
    const MESSAGES: [&str; 5] = ["none", "unknown", "ascii", "unicode", "registered"];
    let is_one = |word: Option<&&str>, words: &[&str]| {
        word.is_some_and(|word| words.iter().any(|known| known.eq_ignore_ascii_case(word)))
    };
    let colons: Vec<usize> = text.match_indices(':').map(|(at, _)| at).collect();
    let fields: Vec<&str> = text.split(':').collect();
    // A message may contain colons as well, so from the right, the first place where all three words fit.
    let fits = |place: &usize| {
        is_one(fields.get(place + 1), &PAYLOADS)
            && is_one(fields.get(place + 3), &COLORS)
            && is_one(fields.get(place + 5), &MESSAGES)
            && fields.len() > place + 6
    };
    let place = (0..colons.len()).rev().find(fits).or_else(|| colons.len().checked_sub(6));
    place.map_or(text, |place| &text[..colons[place]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cell: &str) -> Vec<(Option<u64>, Option<String>, String)> {
        let ranges = pushed(cell, &mut Texts::default());
        ranges.into_iter().map(|r| (r.owner, r.domain.map(|d| d.to_string()), r.name.to_string())).collect()
    }

    #[test]
    fn nested_ranges_come_outermost_first() {
        let cell = "467  \"<default domain>:A:none:none:none:none:none:none\"  \
                    \"<default domain>:A1:none:none:none:none:none:none\" ";
        assert_eq!(read(cell), [(Some(467), None, "A".into()), (Some(467), None, "A1".into())]);
    }

    #[test]
    fn names_and_messages_may_contain_colons_and_spaces() {
        let cell = "9  \"CCCL:cub::DeviceScan::ExclusiveScan:none:none:none:none:none:none\"  \
                    \"LLM:step 3: b=1:int64:3:argb:0xff00ff:REGISTERED:step 3: b=1\" ";
        let names: Vec<_> = read(cell).into_iter().map(|(_, domain, name)| (domain, name)).collect();
        let expected = [("CCCL", "cub::DeviceScan::ExclusiveScan"), ("LLM", "step 3: b=1")];
        assert_eq!(names, expected.map(|(domain, name)| (Some(domain.to_owned()), name.to_owned())));
    }

    #[test]
    fn each_thread_owns_the_ranges_behind_it() {
        let cell = "1 \"d:A:none:none:none:none:none:none\" 2 \"d:B:none:none:none:none:none:none\"";
        let owners: Vec<_> = read(cell).into_iter().map(|(owner, _, name)| (owner, name)).collect();
        assert_eq!(owners, [(Some(1), "A".into()), (Some(2), "B".into())]);
    }

    #[test]
    fn a_quote_inside_a_name_does_not_end_it() {
        let cell = "1  \"d:say \"hi\"!:none:none:none:none:none:none\" ";
        assert_eq!(read(cell)[0].2, "say \"hi\"!");
    }

    #[test]
    fn start_stop_ranges_carry_their_handle() {
        let ranges = started("\"12:<default domain>:B:none:none:none:none:none:none\" ", &mut Texts::default());
        assert_eq!((ranges[0].owner, &ranges[0].domain, &*ranges[0].name), (Some(12), &None, "B"));
    }

    #[test]
    fn an_empty_cell_has_no_ranges_and_a_strange_one_keeps_its_words() {
        assert_eq!(read(""), []);
        assert_eq!(read("5 "), []);
        assert_eq!(read("\"<default domain>:A")[0].2, "A");
    }
}
