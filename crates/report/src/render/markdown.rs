//! Pages as Markdown.

use super::block::Block;
use super::table::Table;
use super::text::{Span, Text};

/// The whole page.
pub(super) fn page(title: &Text, blocks: &[Block]) -> String {
    let mut text = format!("# {}\n", line(title));
    for block in blocks {
        text.push('\n');
        text += &self::block(block);
    }
    text
}

/// Blocks without a title around them, as for a comment on a change.
pub(super) fn blocks(blocks: &[Block]) -> String {
    blocks.iter().map(block).collect::<Vec<_>>().join("\n")
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading { level, text } => format!("{} {}\n", "#".repeat(usize::from(*level)), line(text)),
        Block::Sentence(text) => line(text) + "\n",
        Block::Callout { title, lines } => {
            let lines: String = lines.iter().map(|text| format!("> - {}\n", line(text))).collect();
            format!("> **{title}**\n>\n{lines}")
        }
        Block::List(items) => items.iter().map(|item| format!("- {}\n", line(item))).collect(),
        Block::Steps(items) => {
            items.iter().enumerate().map(|(index, item)| format!("{}. {}\n", index + 1, line(item))).collect()
        }
        Block::Facts(rows) => rows.iter().map(|(name, value)| format!("- {name}: {}\n", line(value))).collect(),
        Block::Table(table) => self::table(table),
        Block::Code { language, lines } => format!("```{language}\n{}```\n", lines.concat()),
        Block::Chart { title, file } => format!("![{}]({file})\n", title.replace(['[', ']'], "")),
    }
}

/// A table, one line per row.
fn table(table: &Table) -> String {
    table.markdown(|cell| line(&Text::new(cell)).replace('|', "\\|"))
}

pub(super) fn line(text: &Text) -> String {
    text.0.iter().map(span).collect()
}

fn span(span: &Span) -> String {
    match span {
        Span::Plain(text) => escaped(text),
        Span::Code(name) => code(name),
        Span::Strong(inside) => format!("**{}**", inside.iter().map(self::span).collect::<String>()),
        Span::Link { text, target } => format!("[{}]({target})", escaped(text).replace(['[', ']'], "")),
    }
}

fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    if longest == 0 {
        return format!("`{text}`");
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}

/// Only what Markdown would take for markup is escaped, so that formulas stay readable. The text follows other text on its
/// line, or starts with a letter, so that no list and no heading can start.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let special = match c {
            '`' | '~' | '$' => true,
            // A comparison is followed by a space or a number, markup is not.
            '<' => !(after.is_whitespace() || after.is_ascii_digit()),
            '*' => !(before.is_whitespace() && after.is_whitespace()),
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            // A bracket is a link only with a target or a definition behind it.
            ']' => matches!(after, '(' | '[' | ':'),
            '\\' | '&' => !after.is_whitespace(),
            _ => false,
        };
        if special {
            escaped.push('\\');
        }
        escaped.push(c);
        before = c;
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::page::Page;
    use super::*;

    #[test]
    fn formulas_stay_as_they_are_written() {
        for text in [
            "y = silu(gate_proj(x)) * up_proj(x)",
            "x / sqrt(mean(x^2) + eps)",
            "P = S * (T - S)",
            "[B, S, O]",
            "<0.1%",
        ] {
            assert_eq!(escaped(text), text);
        }
    }

    #[test]
    fn what_would_be_markup_is_escaped() {
        assert_eq!(escaped("a*b*c"), r"a\*b\*c");
        assert_eq!(escaped("_x_ `y` <b> [z](u)"), r"\_x\_ \`y\` \<b> [z\](u)");
    }

    #[test]
    fn code_holds_backticks() {
        assert_eq!(code("model.layers.*"), "`model.layers.*`");
        assert_eq!(code("a``b"), "``` a``b ```");
        assert_eq!(code(""), "``");
    }

    #[test]
    fn a_page_reads_from_top_to_bottom() {
        let mut page = Page::new("A run of `x`");
        page.callout("Read this first", ["a profiler was attached"]);
        page.paragraph("**So** it is.");
        page.heading("Part");
        page.list(["one", "two"].map(str::to_owned));
        let expected = "# A run of `x`\n\n> **Read this first**\n>\n> - a profiler was attached\n\n**So** it is.\n\n## Part\n\n- one\n- two\n";
        assert_eq!(page.markdown(), expected);
    }
}
