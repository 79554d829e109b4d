//! Text in columns, as Markdown or plain.

use std::borrow::Cow;

/// Space between two columns of a plain table.
const GAP: &str = "  ";

/// One column: its head, and on which side its cells stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    head: &'static str,
    right: bool,
}

/// Rows of cells. Each column is as wide as its widest cell, so both forms read well in a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

impl Column {
    /// A column of words, flush left.
    pub(crate) const fn text(head: &'static str) -> Self {
        Self { head, right: false }
    }

    /// A column of numbers, flush right.
    pub(crate) const fn number(head: &'static str) -> Self {
        Self { head, right: true }
    }
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    pub(crate) fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Whether there is a row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As a Markdown table, one line per row. Cells may hold Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut rows = self.cells(|cell| printable(cell).replace('|', "\\|"));
        let widths = widths(&rows).map(|width| width.max(3));
        let rule = |column: usize| match self.columns[column].right {
            true => "-".repeat(widths[column] - 1) + ":",
            false => "-".repeat(widths[column]),
        };
        rows.insert(1, std::array::from_fn(rule));
        rows.iter().map(|row| format!("| {} |\n", self.padded(row, &widths).join(" | "))).collect()
    }

    /// As plain text, one line per row, none ending in a space.
    pub(crate) fn plain(&self) -> String {
        let rows = self.cells(|cell| printable(cell).into_owned());
        let widths = widths(&rows);
        rows.iter().map(|row| self.padded(row, &widths).join(GAP).trim_end().to_owned() + "\n").collect()
    }

    fn padded(&self, row: &[String; N], widths: &[usize; N]) -> [String; N] {
        std::array::from_fn(|column| {
            let cell = &row[column];
            let padding = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
            if self.columns[column].right { padding + cell } else { cell.clone() + &padding }
        })
    }

    /// Heads and rows, each cell made fit for its form.
    fn cells(&self, fit: impl Fn(&str) -> String) -> Vec<[String; N]> {
        let heads = self.columns.map(|column| column.head.to_owned());
        let rows = self.rows.iter().map(|row| std::array::from_fn(|column| fit(&row[column])));
        std::iter::once(heads).chain(rows).collect()
    }
}

fn widths<const N: usize>(rows: &[[String; N]]) -> [usize; N] {
    std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default())
}

/// The text on one line, with control characters made visible: what a file says must neither break a table nor reach a
/// terminal as a command.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let show = |c: char| match c {
        '\n' | '\r' | '\t' => " ".to_owned(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(show).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> Table<3> {
        let mut table = Table::new([Column::text("name"), Column::number("size"), Column::text("note")]);
        table.row(["a".to_owned(), "1 B".to_owned(), String::new()]);
        table.row(["größer".to_owned(), "61.4 kB".to_owned(), "a | b".to_owned()]);
        table
    }

    #[test]
    fn plain_columns_line_up_and_lines_end_with_their_text() {
        insta::assert_snapshot!(sizes().plain(), @r"
        name       size  note
        a           1 B
        größer  61.4 kB  a | b
        ");
    }

    #[test]
    fn markdown_columns_line_up_and_say_their_side() {
        insta::assert_snapshot!(sizes().markdown(), @r"
        | name   |    size | note   |
        | ------ | ------: | ------ |
        | a      |     1 B |        |
        | größer | 61.4 kB | a \| b |
        ");
    }

    #[test]
    fn a_cell_cannot_break_its_row_or_command_the_terminal() {
        let mut table = Table::new([Column::text("x")]);
        table.row(["two\nlines \u{1b}[31m".to_owned()]);
        assert_eq!(table.plain(), "x\ntwo lines \\u{1b}[31m\n");
        assert_eq!(table.markdown().lines().count(), 3);
    }

    #[test]
    fn a_table_without_rows_has_its_heads() {
        let table = Table::new([Column::text("x"), Column::number("y")]);
        assert!(table.is_empty());
        assert_eq!(table.plain(), "x  y\n");
    }
}
