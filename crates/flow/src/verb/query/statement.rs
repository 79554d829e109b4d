//! Whether a text is one SELECT, before any engine sees it. The engine looks again with its own parser.

use types::UserError;

/// Words a statement that only reads starts with.
const READING: [&str; 4] = ["SELECT", "WITH", "FROM", "VALUES"];

/// The statement without what may stand behind it.
pub(super) fn single_select(text: &str) -> Result<&str, UserError> {
    let start = skip(text, 0);
    let opened = text[start..].trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    let word: String = opened.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if opened.is_empty() {
        return Err(refused("the statement is empty"));
    }
    if !READING.contains(&word.to_uppercase().as_str()) {
        let word = if word.is_empty() { opened.chars().take(12).collect() } else { word };
        return Err(refused(format!("`{word}` is not allowed: a query must be a single SELECT")));
    }
    let Some(end) = semicolon(text, start) else { return Ok(text) };
    let mut rest = skip(text, end + 1);
    while text[rest..].starts_with(';') {
        rest = skip(text, rest + 1);
    }
    if text[rest..].is_empty() {
        Ok(&text[..end])
    } else {
        let rest: String = text[rest..].chars().take(40).collect();
        Err(refused(format!("found a second statement: `{rest}`; a query must be a single SELECT")))
    }
}

fn refused(message: impl Into<String>) -> UserError {
    UserError::usage(message).hint(
        "for example `llm-perf query DIR 'SELECT name, duration_ns FROM kernels LIMIT 5'`; list predefined questions \
         with `llm-perf query --list`",
    )
}

/// The first place from `at` on that is neither space nor comment.
fn skip(text: &str, at: usize) -> usize {
    let mut at = at;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        match comment(text, at) {
            Some(end) => at = end,
            None => return at,
        }
    }
}

/// The end of the comment that starts here. Comments nest, as in the standard.
fn comment(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    if rest.starts_with("--") {
        return Some(rest.find('\n').map_or(text.len(), |line| at + line + 1));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let (mut depth, mut place) = (1, at + 2);
    while depth > 0 && place < text.len() {
        let rest = &text[place..];
        if rest.starts_with("/*") {
            (depth, place) = (depth + 1, place + 2);
        } else if rest.starts_with("*/") {
            (depth, place) = (depth - 1, place + 2);
        } else {
            place += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    Some(place)
}

/// The first semicolon outside of texts, names and comments.
fn semicolon(text: &str, start: usize) -> Option<usize> {
    let mut at = start;
    while let Some(next) = text[at..].chars().next() {
        at = match next {
            ';' => return Some(at),
            '\'' | '"' => text[at + 1..].find(next).map_or(text.len(), |end| at + end + 2),
            _ => comment(text, at).unwrap_or(at + next.len_utf8()),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_select_passes_with_whatever_stands_around_it() {
        for text in [
            "SELECT 1",
            "  -- what it answers\n with a AS (SELECT 1) SELECT * FROM a",
            "/* a; /* b */ */ (select 1)",
            "FROM kernels",
            "select ';' AS \"a;b\" -- ; c",
            "SELECT 'it''s; fine'",
        ] {
            assert_eq!(single_select(text), Ok(text), "{text}");
        }
        assert_eq!(single_select("SELECT 1; -- end\n ;"), Ok("SELECT 1"));
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        let refused = |text: &str| single_select(text).unwrap_err().to_string();
        assert_eq!(refused("drop TABLE kernels"), "`drop` is not allowed: a query must be a single SELECT");
        for text in [
            "COPY (SELECT 1) TO 'x'",
            "INSERT INTO a SELECT 1",
            "EXPLAIN SELECT 1",
            "PRAGMA x",
            "ATTACH 'x'",
            "SET a = 1",
            ".read x",
        ] {
            assert!(refused(text).contains("is not allowed"), "{text}");
        }
        assert_eq!(
            refused("SELECT 1; COPY a TO 'b'"),
            "found a second statement: `COPY a TO 'b'`; a query must be a single SELECT"
        );
        assert_eq!(refused(" -- nothing"), "the statement is empty");
        assert_eq!(refused("/* open"), "the statement is empty");
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[-/*;'\"a-zé \n(]{0,40}") {
            let _ = single_select(&text);
            let _ = single_select(&format!("SELECT {text}"));
        }
    }
}
