//! Pages for a terminal: the same blocks, in columns.

use super::block::Block;
use super::table::Table;
use super::text::Text;
use super::wrap::wrapped;

/// Longest line of a sentence.
const WIDTH: usize = 100;

/// The blocks, set apart by empty lines where they are of different kinds.
pub(super) fn blocks(blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut before: Option<&Block> = None;
    for block in blocks {
        if before.is_some_and(|before| stands_apart(before, block)) {
            text.push('\n');
        }
        text += &self::block(block);
        before = Some(block);
    }
    text
}

/// A table and a heading start after an empty line, and facts do after a table; what else follows a table is about it, and
/// sentences and facts follow each other. A callout ends in an
/// empty line of its own, and nothing comes between a heading and its section.
fn stands_apart(before: &Block, block: &Block) -> bool {
    match (before, block) {
        (Block::Callout { .. } | Block::Heading { .. }, _) => false,
        (_, Block::Heading { .. } | Block::Table(_) | Block::Code { .. }) => true,
        (Block::Table(_), Block::Facts(_) | Block::Callout { .. }) => true,
        _ => false,
    }
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading { text, .. } | Block::Sentence(text) => text.terminal() + "\n",
        Block::Callout { title, lines } => {
            let lines: String = lines.iter().map(|line| format!("  - {}\n", hanging(&line.terminal(), 4))).collect();
            format!("{title}:\n{lines}\n")
        }
        Block::List(items) => items.iter().map(|item| format!("- {}\n", item.terminal())).collect(),
        Block::Steps(items) => {
            items.iter().enumerate().map(|(index, item)| format!("{}. {}\n", index + 1, item.terminal())).collect()
        }
        Block::Facts(rows) => facts(rows),
        Block::Table(table) => table.mapped(|cell| Text::new(cell).plain()).to_string(),
        Block::Code { lines, .. } => lines.concat(),
        Block::Chart { .. } => String::new(),
    }
}

/// Prose behind a lead of so many columns; further lines start below it.
fn hanging(text: &str, lead: usize) -> String {
    wrapped(text, WIDTH - lead).join(&format!("\n{}", " ".repeat(lead)))
}

fn facts(rows: &[(&'static str, Text)]) -> String {
    let mut table = Table::default();
    for (name, value) in rows {
        table.row([(*name).to_owned(), value.terminal()]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Page;

    #[test]
    fn long_caveats_are_wrapped_behind_their_dash() {
        let mut page = Page::new("");
        page.callout("Read this first", ["word ".repeat(30).trim()]);
        let text = page.terminal();
        assert!(text.starts_with("Read this first:\n  - word word"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.lines().nth(2).map(|line| line.starts_with("    word")), Some(true), "{text}");
        assert_eq!(text.matches("word").count(), 30);
    }
}
