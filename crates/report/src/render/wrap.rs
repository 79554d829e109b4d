//! Prose in lines of a width.

/// A text in lines of at most this width. A longer word, such as a path, stays whole so that it can be copied.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_and_lines_keep_to_the_width() {
        assert_eq!(wrapped("a/very/long/path is here", 8), ["a/very/long/path", "is here"]);
        assert_eq!(wrapped("", 8), [""]);
    }
}
