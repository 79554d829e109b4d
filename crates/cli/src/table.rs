//! Text in columns.

use std::borrow::Cow;
use std::fmt;

/// Space between two columns.
const GAP: &str = "  ";

/// Rows of cells; each column is as wide as its widest cell, the last one as wide as it likes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Table {
    /// A table with these column heads.
    pub(crate) fn with_heads<const N: usize>(heads: [&str; N]) -> Self {
        let mut table = Self::default();
        table.row(heads);
        table
    }

    /// Sets a column flush right, as numbers are.
    pub(crate) fn align_right(mut self, column: usize) -> Self {
        self.right.push(column);
        self
    }

    /// Adds a row.
    pub(crate) fn row<C: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(|cell| printable(cell.as_ref()).into_owned()).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
        let widths: Vec<usize> = (0..columns).filter_map(widest).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let padding = " ".repeat(widths[column] - width(cell));
                let (before, after) =
                    if self.right.contains(&column) { (padding, String::new()) } else { (String::new(), padding) };
                line.extend([if column == 0 { "" } else { GAP }, &before, cell, &after]);
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The text with control characters made visible: what a file says must not reach the terminal as a command.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let show = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(show).collect::<String>().into()
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_with_their_text() {
        let mut table = Table::with_heads(["NAME", "SIZE", "NOTE"]).align_right(1);
        table.row(["a", "1 B", ""]);
        table.row(["größer", "61.4 kB", "a longer note"]);
        assert_eq!(table.to_string(), "NAME       SIZE  NOTE\na           1 B\ngrößer  61.4 kB  a longer note\n");
    }

    #[test]
    fn a_row_may_be_shorter_than_others() {
        let mut table = Table::default();
        table.row(["a", "b"]);
        table.row(["long"]);
        assert_eq!(table.to_string(), "a     b\nlong\n");
        assert_eq!(Table::default().to_string(), "");
    }

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        let mut table = Table::default();
        table.row(["red\u{1b}[31m", "two\nlines"]);
        assert_eq!(table.to_string(), "red\\u{1b}[31m  two\\nlines\n");
    }
}
