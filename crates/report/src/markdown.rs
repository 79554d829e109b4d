//! Texts put into Markdown so that they read as they were written.

use crate::table::printable;

/// The text as a code span.
pub(crate) fn code(text: &str) -> String {
    let text = printable(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    if longest == 0 {
        return format!("`{text}`");
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}

/// The text as prose: only what Markdown would take for markup is escaped, so that formulas stay readable. It is meant
/// to follow other text on its line, where no list and no heading can start.
pub(crate) fn prose(text: &str) -> String {
    let text = printable(text);
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let special = match c {
            '`' | '~' | '<' | '$' => true,
            '*' => !(before.is_whitespace() && after.is_whitespace()),
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            // A bracket is a link only with a target or a definition behind it.
            ']' => matches!(after, '(' | '[' | ':'),
            '\\' | '&' => !after.is_whitespace(),
            _ => false,
        };
        if special {
            escaped.push('\\');
        }
        escaped.push(c);
        before = c;
    }
    escaped
}

/// Evidence, advice or a remedy: prose in which backticks set names apart.
pub(crate) fn sentence(text: &str) -> String {
    let part = |(index, part): (usize, &str)| if index % 2 == 1 { code(part) } else { prose(part) };
    text.split('`').enumerate().map(part).collect()
}

/// Names as code spans.
pub(crate) fn codes(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| code(name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// A link to a page beside this one, or below it.
pub(crate) fn link(text: &str, target: &str) -> String {
    format!("[{}]({target})", prose(text).replace(['[', ']'], ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_stay_as_they_are_written() {
        for text in ["y = silu(gate_proj(x)) * up_proj(x)", "x / sqrt(mean(x^2) + eps)", "P = S * (T - S)", "[B, S, O]"]
        {
            assert_eq!(prose(text), text);
        }
    }

    #[test]
    fn what_would_be_markup_is_escaped() {
        assert_eq!(prose("a*b*c"), r"a\*b\*c");
        assert_eq!(prose("_x_ `y` <b> [z](u)"), r"\_x\_ \`y\` \<b> [z\](u)");
        assert_eq!(prose("one\ntwo"), "one two");
    }

    #[test]
    fn code_holds_backticks() {
        assert_eq!(code("model.layers.*"), "`model.layers.*`");
        assert_eq!(code("a``b"), "``` a``b ```");
        assert_eq!(code(""), "``");
    }
}
