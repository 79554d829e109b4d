//! Texts put into SVG and HTML.

/// A text inside SVG or HTML. Control characters but line breaks have no place in it.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_control() || *c == '\n') {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_leave_their_place() {
        assert_eq!(escape("<a> & \"b\"\u{1b}"), "&lt;a&gt; &amp; &quot;b&quot;");
    }
}
