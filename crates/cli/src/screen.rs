//! Text on a terminal: paragraphs and tables that keep to its width. What is piped is never cut or wrapped.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};

use flow::{Table, wrapped};

/// Space between two columns.
const GAP: usize = 2;

/// Fewest columns that prose is wrapped into; below, whole columns are left out.
const NARROWEST: usize = 24;

/// Columns of standard output: what `COLUMNS` says, else the terminal; absent where it goes elsewhere.
pub(crate) fn stdout_width() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    set.or_else(|| terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0)))
}

/// The same where standard output is a terminal, and absent where it is not, whatever `COLUMNS` says.
pub(crate) fn terminal_width() -> Option<usize> {
    if io::stdout().is_terminal() { stdout_width() } else { None }
}

/// A text after a first line's lead of `indent` columns, wrapped where there is a terminal; further lines start below it.
pub(crate) fn hanging(text: &str, indent: usize, width: Option<usize>) -> String {
    match width.and_then(|width| width.checked_sub(indent)).filter(|room| *room >= NARROWEST) {
        Some(room) => wrapped(text, room).join(&format!("\n{}", " ".repeat(indent))),
        None => text.to_owned(),
    }
}

/// A table that keeps to the width of the terminal: its last column is wrapped, and where there is no room for that, the last columns
/// are left out and `...` stands for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScreenTable {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    widest: Option<usize>,
}

impl ScreenTable {
    /// A table without rows; heads are written as for [`Table::new`].
    pub(crate) fn new(heads: &str) -> Self {
        Self { heads: heads.split('|').map(|head| head.trim().to_owned()).collect(), ..Self::default() }
    }

    /// Cuts cells of all columns but the last to this width.
    pub(crate) fn widest(self, widest: usize) -> Self {
        Self { widest: Some(widest), ..self }
    }

    /// Adds a row.
    pub(crate) fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        let columns = self.heads.len().max(cells.len());
        self.heads.resize(columns, String::new());
        self.rows.push(cells);
    }

    /// As text, for a terminal of that width or for a pipe.
    pub(crate) fn text(&self, width: Option<usize>) -> String {
        let whole = self.first(self.heads.len());
        match width {
            Some(width) if widest(&whole) > width => self.fitted(width),
            _ => whole,
        }
    }

    fn fitted(&self, width: usize) -> String {
        let last = self.heads.len() - 1;
        let lead = self.first(last);
        let start = widest(&lead) + GAP;
        let is_prose = !self.heads[last].starts_with('>');
        if is_prose && width >= start + NARROWEST {
            return self.wrapping_last(&lead, start, width);
        }
        // As many whole columns as fit, and a sign that there are more.
        let sign = format!("{}...", " ".repeat(GAP));
        let fits = |columns: &usize| widest(&self.first(*columns)) + sign.len() <= width;
        let text = self.first((1..=last).rev().find(fits).unwrap_or(1));
        match text.split_once('\n') {
            Some((head, rest)) if self.has_heads() => format!("{head}{sign}\n{rest}"),
            _ => text,
        }
    }

    fn wrapping_last(&self, lead: &str, start: usize, width: usize) -> String {
        let last = self.heads.len() - 1;
        let head = self.has_heads().then_some(&self.heads[last]);
        let cells = self.rows.iter().map(|row| row.get(last).map_or("", String::as_str));
        let mut text = String::new();
        for (line, cell) in lead.lines().zip(head.into_iter().map(String::as_str).chain(cells)) {
            let cell = hanging(&flow::printable(cell), start, Some(width));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", format!("{line:<start$}{cell}").trim_end());
        }
        text
    }

    /// The first columns as a whole table.
    fn first(&self, columns: usize) -> String {
        let heads: Vec<&str> = self.heads.iter().take(columns).map(String::as_str).collect();
        let mut table = if heads.is_empty() { Table::default() } else { Table::new(&heads.join("|")) };
        if let Some(widest) = self.widest {
            table = table.widest(widest);
        }
        for row in &self.rows {
            table.row(row.iter().take(columns).cloned());
        }
        table.to_string()
    }

    fn has_heads(&self) -> bool {
        self.heads.iter().any(|head| !head.trim_start_matches('>').is_empty())
    }
}

/// Columns of the longest line.
fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profiles() -> ScreenTable {
        let mut table = ScreenTable::new("NAME | >TOKENS | ABOUT");
        table.row(["short", "7", "A text"]);
        table.row(["rather-long", "512", "One page in two tiles, with a prompt and many new tokens"]);
        table
    }

    #[test]
    fn the_last_column_wraps_beneath_itself() {
        assert_eq!(profiles().text(None).lines().count(), 3);
        insta::assert_snapshot!(profiles().text(Some(50)), @r"
        NAME         TOKENS  ABOUT
        short             7  A text
        rather-long     512  One page in two tiles, with a
                             prompt and many new tokens
        ");
    }

    #[test]
    fn columns_without_room_are_left_out_whole() {
        insta::assert_snapshot!(profiles().text(Some(30)), @r"
        NAME         TOKENS  ...
        short             7
        rather-long     512
        ");
        assert!(
            profiles().text(Some(12)).starts_with("NAME\nshort\n")
                || profiles().text(Some(12)).starts_with("NAME  ...")
        );
    }

    #[test]
    fn a_table_without_heads_keeps_its_first_row() {
        let mut table = ScreenTable::default();
        table.row(["folder", "a folder with a name of several words"]);
        assert_eq!(table.text(Some(34)), "folder  a folder with a name of\n        several words\n");
        assert_eq!(table.text(Some(80)), table.text(None));
    }

    #[test]
    fn a_word_is_never_broken() {
        assert_eq!(wrapped("a/very/long/path is here", 8), ["a/very/long/path", "is here"]);
        assert_eq!(hanging("one two", 4, None), "one two");
        assert_eq!(wrapped("", 8), [""]);
    }
}
