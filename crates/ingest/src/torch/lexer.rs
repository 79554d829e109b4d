//! JSON text, one token at a time: where a value starts and ends.
//!
//! Nothing is built and nothing recurses. A scan either finds its end, or says that the bytes ran out before it, or where
//! the text stops being JSON. Scalars are only delimited here: `inf` and `nan`, which the torch profiler writes for
//! bandwidths, pass.

use std::borrow::Cow;

/// Values nested deeper than this are refused, as by other readers of JSON.
pub(crate) const DEEPEST: u32 = 128;

/// Why a scan did not reach the end of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The bytes end first.
    More,
    /// The byte at this place cannot be there.
    Bad(usize),
}

/// The place after what was scanned, or why there is none.
pub(crate) type Scan<T> = Result<T, Stop>;

/// The first byte from `at` on that is no white space; the end of the bytes where there is none.
#[inline]
pub(crate) fn space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The byte at a place.
#[inline]
pub(crate) fn peek(bytes: &[u8], at: usize) -> Scan<u8> {
    bytes.get(at).copied().ok_or(Stop::More)
}

/// The end of a string whose opening quote is at `at`: the place after its closing quote.
#[inline]
pub(crate) fn string(bytes: &[u8], at: usize) -> Scan<usize> {
    /// Short texts are most of a trace, and for them a call costs more than looking at each byte.
    const SHORT: usize = 24;
    let start = at + 1;
    let near = bytes.get(start..).ok_or(Stop::More)?;
    for (length, byte) in near.iter().take(SHORT).enumerate() {
        match byte {
            b'"' => return Ok(start + length + 1),
            b'\\' => return string_rest(bytes, start + length),
            _ => {}
        }
    }
    string_rest(bytes, start + SHORT)
}

fn string_rest(bytes: &[u8], mut at: usize) -> Scan<usize> {
    loop {
        let rest = bytes.get(at..).ok_or(Stop::More)?;
        let found = memchr::memchr2(b'"', b'\\', rest).ok_or(Stop::More)?;
        if rest[found] == b'"' {
            return Ok(at + found + 1);
        }
        at += found + 2;
    }
}

/// The end of the value that starts at `at`.
#[inline]
pub(crate) fn value(bytes: &[u8], at: usize) -> Scan<usize> {
    match peek(bytes, at)? {
        b'"' => string(bytes, at),
        b'{' | b'[' => nested(bytes, at),
        _ => scalar(bytes, at),
    }
}

/// The end of a number or a word. It has one only where something follows: `12` may be the beginning of `123`.
#[inline]
fn scalar(bytes: &[u8], at: usize) -> Scan<usize> {
    let mut end = at;
    loop {
        match peek(bytes, end)? {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.' => end += 1,
            b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t' if end > at => return Ok(end),
            _ => return Err(Stop::Bad(end)),
        }
    }
}

/// The end of the list or object that starts at `at`. What is inside is only balanced, not checked.
fn nested(bytes: &[u8], at: usize) -> Scan<usize> {
    // One bit per level: whether it is an object.
    let mut objects = 0_u128;
    let mut depth = 0;
    let mut at = at;
    loop {
        match peek(bytes, at)? {
            b'"' => {
                at = string(bytes, at)?;
                continue;
            }
            open @ (b'{' | b'[') => {
                if depth == DEEPEST {
                    return Err(Stop::Bad(at));
                }
                objects = objects << 1 | u128::from(open == b'{');
                depth += 1;
            }
            close @ (b'}' | b']') => {
                if (objects & 1 == 1) != (close == b'}') {
                    return Err(Stop::Bad(at));
                }
                objects >>= 1;
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The name of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The place after its closing quote.
    pub(crate) end: usize,
    /// Whether it has escapes, so that its bytes are not its text.
    pub(crate) escaped: bool,
}

/// The name of the member that starts at `at`, and the place its value starts.
#[inline]
pub(crate) fn member(bytes: &[u8], at: usize) -> Scan<(Name, usize)> {
    if peek(bytes, at)? != b'"' {
        return Err(Stop::Bad(at));
    }
    let mut end = at + 1;
    let name = loop {
        match peek(bytes, end)? {
            b'"' => break Name { end: end + 1, escaped: false },
            b'\\' => break Name { end: string_rest(bytes, end)?, escaped: true },
            _ => end += 1,
        }
    };
    let mut colon = name.end;
    if peek(bytes, colon)? != b':' {
        colon = space(bytes, colon);
        if peek(bytes, colon)? != b':' {
            return Err(Stop::Bad(colon));
        }
    }
    Ok((name, space(bytes, colon + 1)))
}

/// The text of a token: a string without quotes and escapes, anything else as it stands. What is no UTF-8, and half a
/// surrogate pair, becomes U+FFFD.
pub(crate) fn text(token: &[u8]) -> Cow<'_, str> {
    let inside = inside(token);
    if memchr::memchr(b'\\', inside).is_none() {
        return String::from_utf8_lossy(inside);
    }
    let mut plain = Vec::with_capacity(inside.len());
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &inside[at..]) {
        plain.extend_from_slice(&inside[at..at + found]);
        at += found + 1;
        let Some(escape) = inside.get(at) else { break };
        at += 1;
        let character = match escape {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => unicode(inside, &mut at),
            other => {
                plain.push(*other);
                continue;
            }
        };
        plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    plain.extend_from_slice(inside.get(at..).unwrap_or_default());
    Cow::Owned(String::from_utf8(plain).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()))
}

/// A token without the quotes of a string.
pub(crate) fn inside(token: &[u8]) -> &[u8] {
    token.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(token)
}

/// The character of `\uXXXX`, whose digits start at `at`; with a second one where the first is half of a pair.
fn unicode(bytes: &[u8], at: &mut usize) -> char {
    let Some(first) = hexadecimal(bytes, *at) else { return char::REPLACEMENT_CHARACTER };
    *at += 4;
    if (0xd800..0xdc00).contains(&first)
        && bytes.get(*at..*at + 2) == Some(b"\\u")
        && let Some(second @ 0xdc00..0xe000) = hexadecimal(bytes, *at + 2)
    {
        *at += 6;
        let both = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn hexadecimal(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_where_it_ends() {
        for (json, end) in [
            (r#""a\"b\\" "#, 8),
            (r#"[[1, 2], "]", {"}": []}] "#, 24),
            ("-12.5e3,", 7),
            ("inf}", 3),
            ("{} ", 2),
            (&format!("\"{}\\\"{}\"", "x".repeat(40), "y".repeat(40)), 84),
        ] {
            assert_eq!(value(json.as_bytes(), 0), Ok(end), "{json}");
        }
    }

    #[test]
    fn a_value_cut_anywhere_asks_for_more() {
        let json = br#"{"a": ["b\\\"c", -1.5, {"d": null}], "long": "abcdefghijklmnopqrstuvwxyz\u0041\n"}"#;
        for length in 0..json.len() {
            assert_eq!(value(&json[..length], 0), Err(Stop::More), "{length} bytes");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_at_its_place() {
        for (json, at) in [("[1, 2}", 5), (",", 0), ("12:", 2), ("{\"a\": ]", 6)] {
            assert_eq!(value(json.as_bytes(), 0), Err(Stop::Bad(at)), "{json}");
        }
        let deep = "[".repeat(200);
        assert_eq!(value(deep.as_bytes(), 0), Err(Stop::Bad(DEEPEST as usize)));
    }

    #[test]
    fn escapes_become_what_they_stand_for() {
        assert_eq!(text(br#""a\tb\"\\\/\u00e9\ud83d\ude00""#), "a\tb\"\\/\u{e9}\u{1f600}");
        assert_eq!(text(br#""\ud83d!\uzzzz""#), "\u{fffd}!\u{fffd}zzzz");
        assert_eq!(text(b"\"\xff\\n\""), "\u{fffd}\n");
        assert_eq!(text(b"12"), "12");
    }
}
