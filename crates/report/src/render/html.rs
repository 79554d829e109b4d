//! Pages as HTML. What a trace calls itself stays text, so that a name from it can do no harm. Nothing here needs a style
//! attribute, which the page's policy forbids.

use super::block::Block;
use super::escape::escape;
use super::table::Table;
use super::text::{Span, Text};

/// The blocks. The anchor of a heading is `prefix` and its words up to a bracket: `report-device-time`.
pub(super) fn blocks(blocks: &[Block], prefix: &str) -> String {
    let (mut text, mut anchors, mut heading) = (String::new(), Vec::new(), String::new());
    for block in blocks {
        text += &match block {
            Block::Heading { level, text: words } => {
                heading = words.plain();
                let anchor = anchor(prefix, &heading, &mut anchors);
                // Sections lie below the page's own headings.
                let element = level + 1;
                format!("<h{element} id=\"{anchor}\">{}</h{element}>\n", line(words))
            }
            Block::Sentence(words) => format!("<p>{}</p>\n", line(words)),
            Block::Callout { title, lines } => {
                format!("<div class=\"callout\" role=\"note\"><strong>{title}</strong>\n{}</div>\n", list("ul", lines))
            }
            Block::List(items) => list("ul", items),
            Block::Steps(items) => list("ol", items),
            Block::Facts(rows) => {
                let rows: Vec<String> =
                    rows.iter().map(|(name, value)| format!("<li>{name}: {}</li>\n", line(value))).collect();
                format!("<ul>\n{}</ul>\n", rows.concat())
            }
            Block::Table(rows) => table(rows, &heading),
            Block::Code { lines, .. } => format!("<pre>{}</pre>\n", escape(&lines.concat())),
            // The page has every picture already.
            Block::Chart { .. } => String::new(),
        };
    }
    text
}

/// The anchor of a heading, another one for each heading of the page.
fn anchor(prefix: &str, heading: &str, anchors: &mut Vec<String>) -> String {
    let words = heading.split(" (").next().unwrap_or_default().to_ascii_lowercase();
    let words: Vec<&str> = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut anchor = format!("{prefix}-{}", words.join("-"));
    if anchors.contains(&anchor) {
        anchor = format!("{anchor}-{}", anchors.len() + 1);
    }
    anchors.push(anchor.clone());
    anchor
}

fn list(element: &str, items: &[Text]) -> String {
    let items: String = items.iter().map(|item| format!("<li>{}</li>\n", line(item))).collect();
    format!("<{element}>\n{items}</{element}>\n")
}

fn table(table: &Table, heading: &str) -> String {
    let label = if heading.is_empty() { "table".to_owned() } else { escape(heading) };
    let side = |right: bool| if right { " class=\"n\"" } else { "" };
    let heads = table.heads().map(|(head, right)| format!("<th scope=\"col\"{}>{}</th>", side(right), escape(head)));
    let row = |cells: Vec<(&str, bool)>| {
        let cells =
            cells.into_iter().map(|(cell, right)| format!("<td{}>{}</td>", side(right), line(&Text::new(cell))));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    // A group, not a region: a page has dozens of tables, too many to be landmarks.
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><table>\n<thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>\n",
        heads.collect::<String>(),
        table
            .shortened_rows()
            .map(|cells| row(cells.iter().map(|(cell, right)| (cell.as_str(), *right)).collect()))
            .collect::<String>()
    )
}

pub(super) fn line(text: &Text) -> String {
    text.0.iter().map(span).collect()
}

fn span(span: &Span) -> String {
    match span {
        Span::Plain(text) => escape(text),
        Span::Code(name) => format!("<code>{}</code>", escape(name)),
        Span::Strong(inside) => format!("<strong>{}</strong>", inside.iter().map(self::span).collect::<String>()),
        // The one file holds every page: there is nothing beside it to lead to.
        Span::Link { text, .. } => escape(text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::Page;
    use super::*;
    use crate::render::text::{code, prose};

    #[test]
    fn tables_and_words_of_a_page_become_elements() {
        let mut page = Page::new("Title");
        page.heading("Part (measured)");
        page.paragraph(&format!("**So** it is {}.", code("a<b>")));
        let mut table = Table::new("name | >time");
        table.row(["`k`", "5 ms"]);
        page.table(&table);
        let shown = page.html_below("r", "");
        assert!(!shown.contains("Title"), "{shown}");
        assert!(shown.contains("<h3 id=\"r-part\">Part (measured)</h3>"), "{shown}");
        assert!(shown.contains("<strong>So</strong> it is <code>a&lt;b&gt;</code>"), "{shown}");
        assert!(shown.contains("<td><code>k</code></td><td class=\"n\">5 ms</td>"), "{shown}");
        assert!(
            shown.contains("role=\"group\" aria-label=\"Part (measured)\""),
            "a table is named by its heading: {shown}"
        );
    }

    #[test]
    fn headings_of_the_same_words_have_different_anchors() {
        let mut page = Page::new("");
        ["A `b`", "A b (c)", "<i>"].iter().for_each(|heading| page.heading(heading));
        let shown = page.html_below("r", "");
        let anchors = ["id=\"r-a-b\"", "id=\"r-a-b-2\"", "id=\"r-i\""];
        assert!(anchors.iter().all(|anchor| shown.matches(anchor).count() == 1), "{shown}");
    }

    #[test]
    fn what_a_trace_calls_itself_stays_text() {
        let mut page = Page::new("");
        page.paragraph(&prose("a <script>alert(1)</script> [x](javascript:alert(1)) <img src=x onerror=y>"));
        let shown = page.html_below("r", "");
        assert!(!shown.contains("<script") && !shown.contains("<img") && !shown.contains("href"), "{shown}");
    }
}
