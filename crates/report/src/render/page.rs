//! A page that grows from top to bottom: blocks, made once and printed by every renderer.

use super::block::Block;
use super::table::Table;
use super::text::Text;
use super::{html, markdown, terminal};

/// The page so far.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub(crate) title: Text,
    pub(crate) blocks: Vec<Block>,
}

impl Page {
    /// A page with its title. This and all other texts are in the notation of [`Text`].
    pub(crate) fn new(title: &str) -> Self {
        Self { title: Text::new(title), blocks: Vec::new() }
    }

    /// Starts a section.
    pub(crate) fn heading(&mut self, heading: &str) {
        self.blocks.push(Block::Heading { level: 2, text: Text::new(heading) });
    }

    /// Starts a part of a section.
    pub(crate) fn subheading(&mut self, heading: &str) {
        self.blocks.push(Block::Heading { level: 3, text: Text::new(heading) });
    }

    /// Adds a paragraph.
    pub(crate) fn paragraph(&mut self, paragraph: &str) {
        self.blocks.push(Block::Sentence(Text::new(paragraph)));
    }

    /// Adds what a reader must not miss, unless there is nothing.
    pub(crate) fn callout(&mut self, title: &'static str, lines: impl IntoIterator<Item = impl AsRef<str>>) {
        let lines: Vec<Text> = lines.into_iter().map(|line| Text::new(line.as_ref())).collect();
        if !lines.is_empty() {
            self.blocks.push(Block::Callout { title, lines });
        }
    }

    /// Adds names with their values, without those that are unknown.
    pub(crate) fn facts(&mut self, rows: impl IntoIterator<Item = (&'static str, Option<String>)>) {
        let known = rows.into_iter().filter_map(|(name, value)| Some((name, Text::new(&value?))));
        let known: Vec<_> = known.collect();
        if !known.is_empty() {
            self.blocks.push(Block::Facts(known));
        }
    }

    /// Adds a table.
    pub(crate) fn table(&mut self, table: &Table) {
        self.blocks.push(Block::Table(table.clone()));
    }

    /// Adds a table, or a paragraph where it has no rows.
    pub(crate) fn table_or(&mut self, table: &Table, none: &str) {
        if table.is_empty() { self.paragraph(none) } else { self.table(table) }
    }

    /// Adds a list, unless it has no items.
    pub(crate) fn list(&mut self, items: impl IntoIterator<Item = String>) {
        let items: Vec<Text> = items.into_iter().map(|item| Text::new(&item)).collect();
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
    }

    /// Adds a numbered list, unless it has no items.
    pub(crate) fn steps(&mut self, items: impl IntoIterator<Item = String>) {
        let items: Vec<Text> = items.into_iter().map(|item| Text::new(&item)).collect();
        if !items.is_empty() {
            self.blocks.push(Block::Steps(items));
        }
    }

    /// Adds lines as they are.
    pub(crate) fn code(&mut self, language: &'static str, lines: impl IntoIterator<Item = String>) {
        let lines = lines.into_iter().map(|line| line + "\n").collect();
        self.blocks.push(Block::Code { language, lines });
    }

    /// Adds a picture that is a file beside the page.
    pub(crate) fn chart(&mut self, title: &str, file: &str) {
        self.blocks.push(Block::Chart { title: title.to_owned(), file: file.to_owned() });
    }

    /// A file of text as a page: for what is kept as text alone.
    pub fn verbatim(text: &str) -> Self {
        let mut page = Self::default();
        page.code("", text.lines().map(str::to_owned));
        page
    }

    /// The page as Markdown.
    pub fn markdown(&self) -> String {
        markdown::page(&self.title, &self.blocks)
    }

    /// The page without its title as Markdown, as for a comment on a change.
    pub fn comment(&self) -> String {
        markdown::blocks(&self.blocks)
    }

    /// The page without its title, for a terminal.
    pub fn terminal(&self) -> String {
        terminal::blocks(&self.blocks)
    }

    /// The page without its title as HTML, below what says its callouts of a title already. The anchor of a heading is `prefix` and
    /// its words up to a bracket.
    pub(crate) fn html_below(&self, prefix: &str, said: &str) -> String {
        let is_said = |block: &&Block| matches!(block, Block::Callout { title, .. } if *title == said);
        html::blocks(&self.blocks.iter().filter(|block| !is_said(block)).cloned().collect::<Vec<_>>(), prefix)
    }
}
