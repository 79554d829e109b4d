//! A Markdown page that grows from top to bottom.

use crate::table::Table;

/// The page so far.
pub(crate) struct Page {
    text: String,
}

impl Page {
    /// A page with its title. This and all other texts may hold Markdown.
    pub(crate) fn new(title: &str) -> Self {
        Self { text: format!("# {title}\n") }
    }

    /// Starts a section.
    pub(crate) fn heading(&mut self, heading: &str) {
        self.text += &format!("\n## {heading}\n");
    }

    /// Starts a part of a section.
    pub(crate) fn subheading(&mut self, heading: &str) {
        self.text += &format!("\n### {heading}\n");
    }

    /// Adds a paragraph.
    pub(crate) fn paragraph(&mut self, paragraph: &str) {
        self.text += &format!("\n{paragraph}\n");
    }

    /// Adds a table.
    pub(crate) fn table(&mut self, table: &Table) {
        self.text.push('\n');
        self.text += &table.markdown();
    }

    /// Adds a table, or a paragraph where it has no rows.
    pub(crate) fn table_or(&mut self, table: &Table, none: &str) {
        if table.is_empty() { self.paragraph(none) } else { self.table(table) }
    }

    /// Adds a list, unless it has no items.
    pub(crate) fn list(&mut self, items: impl IntoIterator<Item = String>) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_some() {
            self.text.push('\n');
        }
        for item in items {
            self.text += &format!("- {item}\n");
        }
    }

    /// Adds lines as they are, between fences; `fence` opens them.
    pub(crate) fn block(&mut self, fence: &str, lines: impl IntoIterator<Item = String>) {
        self.text += &format!("\n{fence}\n");
        for line in lines {
            self.text += &line;
            self.text.push('\n');
        }
        self.text += "```\n";
    }

    /// The whole page.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}
