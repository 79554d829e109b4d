//! `${...}` in texts, split into pieces.
//!
//! Responsible for the grammar alone; what a reference stands for is found by the resolver. A reference may hold others
//! (`${stages.${stage}.time}`), and `\${` stands for the two characters.

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Characters as they are.
    Text(String),
    /// What stands between `${` and `}`.
    Reference(Vec<Piece>),
}

/// References may hold references this deep.
const DEEPEST: usize = 16;

/// Splits a text. The error says what is wrong.
pub(crate) fn split(text: &str) -> Result<Vec<Piece>, String> {
    let mut rest = text;
    let pieces = pieces(&mut rest, 0)?;
    debug_assert!(rest.is_empty(), "the outermost text ends where the text ends");
    Ok(pieces)
}

/// Reads pieces up to the end, or up to the `}` that closes the reference they are in.
fn pieces(rest: &mut &str, depth: usize) -> Result<Vec<Piece>, String> {
    if depth > DEEPEST {
        return Err(format!("references are nested more than {DEEPEST} deep"));
    }
    let mut pieces = Vec::new();
    let mut text = String::new();
    loop {
        if let Some(after) = rest.strip_prefix("\\${") {
            text.push_str("${");
            *rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            *rest = after;
            pieces.push(Piece::Reference(self::pieces(rest, depth + 1)?));
        } else if let Some(after) = rest.strip_prefix('}').filter(|_| depth > 0) {
            *rest = after;
            break;
        } else if let Some(character) = rest.chars().next() {
            text.push(character);
            *rest = &rest[character.len_utf8()..];
        } else if depth > 0 {
            return Err("`${` without a closing `}`".into());
        } else {
            break;
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    if depth > 0 && pieces.is_empty() {
        return Err("`${}` is empty".into());
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    #[test]
    fn texts_split_at_references() {
        assert_eq!(split("plain"), Ok(vec![text("plain")]));
        assert_eq!(split(""), Ok(vec![]));
        assert_eq!(split("a${b.c}d"), Ok(vec![text("a"), Piece::Reference(vec![text("b.c")]), text("d")]));
        let nested = Piece::Reference(vec![text("a."), Piece::Reference(vec![text("b")])]);
        assert_eq!(split("${a.${b}}"), Ok(vec![nested]));
        assert_eq!(split("\\${a} $b {c}"), Ok(vec![text("${a} $b {c}")]));
    }

    #[test]
    fn unfinished_references_are_refused() {
        assert_eq!(split("${a"), Err("`${` without a closing `}`".into()));
        assert_eq!(split("${}"), Err("`${}` is empty".into()));
        assert!(split(&"${".repeat(100)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_splitter_panic(text in "[a.:}{$\\\\]{0,40}") {
            let _ = split(&text);
        }

        #[test]
        fn a_text_without_references_is_left_alone(text in "[^$\\\\]{1,40}") {
            prop_assert_eq!(split(&text), Ok(vec![Piece::Text(text)]));
        }
    }
}
