//! Text in columns, for Markdown and the terminal alike.

use std::borrow::Cow;
use std::fmt;

/// Space between two columns on the terminal.
const GAP: &str = "  ";
/// Cells up to this width line up. A longer one runs over in its own row: it must not pad every other row.
const ALIGNED: usize = 80;
/// Longest name in a Markdown cell, without its backticks.
const NAME: usize = ALIGNED - 2;
/// Longest cell of any kind.
const LONGEST: usize = 1_000;

/// One column: its head, and on which side its cells stand.
#[derive(Clone, Debug)]
struct Column {
    head: String,
    right: bool,
}

/// Rows of cells under their heads.
///
/// Cells are cut to a bounded width, names in their middle: both ends tell kernels and modules apart. Whole names are in
/// the JSON documents.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    widest: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self { columns: Vec::new(), rows: Vec::new(), widest: ALIGNED }
    }
}

impl Table {
    /// A table without rows. Heads are set apart by `|`; `>` before one sets its column flush right, as numbers are.
    pub fn new(heads: &str) -> Self {
        let mut table = Self::default();
        for head in heads.split('|').map(str::trim) {
            let right = head.starts_with('>');
            table.column(head.trim_start_matches('>'), right);
        }
        table
    }

    /// Adds a column.
    pub(crate) fn column(&mut self, head: &str, right: bool) {
        self.columns.push(Column { head: printable(head).into_owned(), right });
    }

    /// Cuts cells of all columns but the last to this width on the terminal.
    pub fn widest(mut self, widest: usize) -> Self {
        self.widest = widest;
        self
    }

    /// Adds a row. It may be shorter than the heads.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        while self.columns.len() < cells.len() {
            self.column("", false);
        }
        self.rows.push(cells);
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Heads, and whether their columns stand flush right.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (&str, bool)> {
        self.columns.iter().map(|column| (column.head.as_str(), column.right))
    }

    /// Rows of cells in the notation of text, none too long, and whether each stands flush right.
    pub(crate) fn shortened_rows(&self) -> impl Iterator<Item = Vec<(String, bool)>> {
        let lines = self.lines(|_, cell| shortened_cell(&printable(cell)).into_owned());
        lines.into_iter().skip(1).map(|line| line.into_iter().zip(self.heads().map(|(_, right)| right)).collect())
    }

    /// The same table with other cells.
    pub(crate) fn mapped(&self, fit: impl Fn(&str) -> String) -> Self {
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| fit(cell)).collect()).collect();
        Self { rows, ..self.clone() }
    }

    /// As a Markdown table, one line per row.
    pub(crate) fn markdown(&self, fit: impl Fn(&str) -> String) -> String {
        let mut lines = self.lines(|_, cell| fit(&shortened_cell(&printable(cell))));
        let widths: Vec<usize> = self.widths(&lines).into_iter().map(|width| width.max(3)).collect();
        let rule = |(column, width): (&Column, &usize)| {
            if column.right { "-".repeat(width - 1) + ":" } else { "-".repeat(*width) }
        };
        lines.insert(1, self.columns.iter().zip(&widths).map(rule).collect());
        lines.iter().map(|line| format!("| {} |\n", self.padded(line, &widths).join(" | "))).collect()
    }

    /// Heads and rows, each cell made fit for its form.
    fn lines(&self, fit: impl Fn(usize, &str) -> String) -> Vec<Vec<String>> {
        let heads = self.columns.iter().map(|column| column.head.clone()).collect();
        let fitted = |row: &Vec<String>| {
            let cells = (0..self.columns.len()).map(|column| row.get(column).map_or("", String::as_str));
            cells.enumerate().map(|(column, cell)| fit(column, cell)).collect()
        };
        std::iter::once(heads).chain(self.rows.iter().map(fitted)).collect()
    }

    fn widths(&self, lines: &[Vec<String>]) -> Vec<usize> {
        let widest = |column: usize| lines.iter().map(|line| width(&line[column]).min(ALIGNED)).max();
        (0..self.columns.len()).filter_map(widest).collect()
    }

    fn padded(&self, line: &[String], widths: &[usize]) -> Vec<String> {
        let pad = |((cell, column), widest): ((&String, &Column), &usize)| {
            let padding = " ".repeat(widest.saturating_sub(width(cell)));
            if column.right { padding + cell } else { cell.clone() + &padding }
        };
        line.iter().zip(&self.columns).zip(widths).map(pad).collect()
    }
}

/// Plain text, one line per row, none ending in a space. Heads that are all empty are left out.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.columns.len().saturating_sub(1);
        let most = |column: usize| if column == last { LONGEST } else { self.widest };
        let lines = self.lines(|column, cell| shortened(&printable(cell), most(column)).into_owned());
        let widths = self.widths(&lines);
        let headless = self.columns.iter().all(|column| column.head.is_empty());
        for line in lines.iter().skip(headless.into()) {
            writeln!(f, "{}", self.padded(line, &widths).join(GAP).trim_end())?;
        }
        Ok(())
    }
}

/// The text on one line, with control characters made visible: what a file says must neither break a table nor reach a
/// terminal as a command.
pub fn printable(text: &str) -> Cow<'_, str> {
    let on_one_line = |c: char| matches!(c, '\n' | '\r' | '\t');
    if !text.contains(is_command) && !text.contains(on_one_line) {
        return text.into();
    }
    let spaced: String = text.chars().map(|c| if on_one_line(c) { ' ' } else { c }).collect();
    harmless(&spaced).into_owned().into()
}

/// The text with its lines kept, and everything else that a terminal would obey made visible.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return text.into();
    }
    let show = |c: char| if is_command(c) { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(show).collect::<String>().into()
}

/// Whether a terminal would do something else than show the character: control characters, and those that turn the direction
/// of what follows, so that a name reads as another.
pub(crate) fn is_command(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// The text with its middle left out where it is too long.
pub(crate) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    let length = width(text);
    if length <= most {
        return text.into();
    }
    let (head, tail) = ((most - 2) / 2, (most - 2).div_ceil(2));
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(length - tail).collect();
    format!("{first}..{last}").into()
}

/// A name as cells show it.
pub(crate) fn shortened_name(name: &str) -> Cow<'_, str> {
    shortened(name, NAME)
}

/// A cell in the notation of text: a name loses its middle, prose its end.
fn shortened_cell(cell: &str) -> Cow<'_, str> {
    let name = cell.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).filter(|name| !name.contains('`'));
    if let Some(name) = name {
        return format!("`{}`", shortened_name(name)).into();
    }
    let Some((end, _)) = cell.char_indices().nth(LONGEST) else { return cell.into() };
    let kept = cell[..end].trim_end_matches('\\');
    let open = if kept.matches('`').count() % 2 == 1 { "`" } else { "" };
    format!("{kept}{open}...").into()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> Table {
        let mut table = Table::new("name | >size | note");
        table.row(["a", "1 B", ""]);
        table.row(["größer", "61.4 kB", "a | b"]);
        table
    }

    #[test]
    fn plain_columns_line_up_and_lines_end_with_their_text() {
        insta::assert_snapshot!(sizes(), @r"
        name       size  note
        a           1 B
        größer  61.4 kB  a | b
        ");
    }

    #[test]
    fn markdown_columns_line_up_and_say_their_side() {
        insta::assert_snapshot!(sizes().markdown(|cell| cell.replace('|', "\\|")), @r"
        | name   |    size | note   |
        | ------ | ------: | ------ |
        | a      |     1 B |        |
        | größer | 61.4 kB | a \| b |
        ");
    }

    #[test]
    fn a_cell_cannot_break_its_row_or_command_the_terminal() {
        let mut table = Table::new("x");
        table.row(["two\nlines \u{1b}[31m"]);
        assert_eq!(table.to_string(), "x\ntwo lines \\u{1b}[31m\n");
        assert_eq!(printable("a\u{202e}b\tc"), "a\\u{202e}b c");
        assert_eq!(harmless("two\nlines\u{202e}\u{7}"), "two\nlines\\u{202e}\\u{7}");
        assert_eq!(table.markdown(str::to_owned).lines().count(), 3);
    }

    #[test]
    fn a_table_without_rows_has_its_heads_and_one_without_heads_its_rows() {
        let table = Table::new("x | >y");
        assert!(table.is_empty());
        assert_eq!(table.to_string(), "x  y\n");
        let mut table = Table::default();
        assert_eq!(table.to_string(), "");
        table.row(["a", "b"]);
        table.row(["long"]);
        assert_eq!(table.to_string(), "a     b\nlong\n");
    }

    #[test]
    fn one_long_name_neither_stays_whole_nor_pads_the_other_rows() {
        let long = format!("void kernel<{}>()", "very_long_argument, ".repeat(5_000));
        let mut table = Table::new("kernel | >total | remedy");
        table.row([format!("`{long}`"), "1 ms".to_owned(), "use `a` ".repeat(1_000)]);
        (0..100).for_each(|_| table.row(["`short`", "2 ms", ""]));
        let (markdown, plain) = (table.markdown(str::to_owned), table.to_string());
        assert!(markdown.len() < 20_000 && plain.len() < 15_000, "{} {}", markdown.len(), plain.len());
        assert!(markdown.contains("`void kernel<very_long") && markdown.contains("argument, >()`"), "{markdown}");
        assert!(markdown.lines().nth(2).unwrap().matches('`').count() % 2 == 0);
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("short", 10), "short");
        assert_eq!(shortened("0123456789abcdef", 10), "0123..cdef");
    }
}
