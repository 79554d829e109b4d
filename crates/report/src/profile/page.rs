//! A Markdown page that grows from top to bottom.

use crate::table::Table;

/// The page so far.
pub(crate) struct Page {
    text: String,
}

impl Page {
    /// A page with its title, which may hold Markdown.
    pub(crate) fn new(title: &str) -> Self {
        Self { text: format!("# {title}\n") }
    }

    /// Begins a section.
    pub(crate) fn heading(&mut self, heading: &str) {
        self.text += &format!("\n## {heading}\n");
    }

    /// Adds a paragraph.
    pub(crate) fn paragraph(&mut self, paragraph: &str) {
        self.text += &format!("\n{paragraph}\n");
    }

    /// Adds a table.
    pub(crate) fn table<const N: usize>(&mut self, table: &Table<N>) {
        self.text.push('\n');
        self.text += &table.markdown();
    }

    /// Adds a list.
    pub(crate) fn list(&mut self, items: impl IntoIterator<Item = String>) {
        self.text.push('\n');
        for item in items {
            self.text += &format!("- {item}\n");
        }
    }

    /// The whole page.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}
