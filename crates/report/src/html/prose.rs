//! Markdown pages as HTML: the words and tables are those of the pages beside it.
//!
//! Only what our own pages use is turned into elements; HTML in them stays text, so that a name from a trace can do no harm.
//! Nothing here needs a style attribute, which the page's policy forbids.

use std::fmt::Write;

use pulldown_cmark::{Alignment, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::escape::escape;

/// The page without its title. The anchor of a heading is `prefix` and its words up to a bracket: `report-device-time`.
pub(super) fn html(markdown: &str, prefix: &str) -> String {
    let mut page = Body {
        text: String::new(),
        prefix,
        anchors: Vec::new(),
        heading: String::new(),
        heading_at: None,
        alignments: Vec::new(),
        cell: 0,
        in_head: false,
        quiet: false,
    };
    Parser::new_ext(markdown, Options::ENABLE_TABLES).for_each(|event| page.take(event));
    page.text
}

struct Body<'a> {
    text: String,
    prefix: &'a str,
    /// Anchors so far.
    anchors: Vec<String>,
    /// The words of the last heading, which name the tables below it.
    heading: String,
    /// Where the heading starts that is being read.
    heading_at: Option<usize>,
    alignments: Vec<Alignment>,
    /// Column of the next cell.
    cell: usize,
    /// Inside the first row of a table.
    in_head: bool,
    /// Inside the title or a picture, which the page has already.
    quiet: bool,
}

impl Body<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => self.quiet = true,
            Event::End(TagEnd::Heading(HeadingLevel::H1)) => self.quiet = false,
            Event::Start(Tag::Image { .. }) => self.quiet = true,
            Event::End(TagEnd::Image) => self.quiet = false,
            _ if self.quiet => {}
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.name(&text);
                self.text += &escape(&text);
            }
            Event::Code(text) => {
                self.name(&text);
                self.text += &format!("<code>{}</code>", escape(&text));
            }
            Event::SoftBreak => self.text.push(' '),
            Event::HardBreak => self.text += "<br>",
            Event::Rule => self.text += "<hr>\n",
            _ => {}
        }
    }

    /// Keeps the words of a heading.
    fn name(&mut self, text: &str) {
        if self.heading_at.is_some() {
            self.heading += text;
        }
    }

    /// The anchor of the heading that was read, another one for each heading of the page.
    fn anchor(&mut self) -> String {
        let words = self.heading.split(" (").next().unwrap_or_default().to_ascii_lowercase();
        let words: Vec<&str> =
            words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let mut anchor = format!("{}-{}", self.prefix, words.join("-"));
        if self.anchors.contains(&anchor) {
            anchor = format!("{anchor}-{}", self.anchors.len() + 1);
        }
        self.anchors.push(anchor.clone());
        anchor
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Paragraph => self.text += "<p>",
            Tag::Heading { .. } => (self.heading, self.heading_at) = (String::new(), Some(self.text.len())),
            Tag::List(_) => self.text += "<ul>\n",
            Tag::Item => self.text += "<li>",
            Tag::CodeBlock(_) => self.text += "<pre>",
            Tag::Strong => self.text += "<strong>",
            Tag::Emphasis => self.text += "<em>",
            Tag::Table(alignments) => {
                self.alignments.clone_from(alignments);
                let heading = escape(&self.heading);
                let label = if heading.is_empty() { "table" } else { &heading };
                // A group, not a region: a page has dozens of tables, too many to be landmarks.
                let _ = writeln!(
                    self.text,
                    "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><table>"
                );
            }
            Tag::TableHead => {
                (self.cell, self.in_head) = (0, true);
                self.text += "<thead><tr>";
            }
            Tag::TableRow => {
                self.cell = 0;
                self.text += "<tr>";
            }
            Tag::TableCell => {
                let right = self.alignments.get(self.cell) == Some(&Alignment::Right);
                self.cell += 1;
                self.text += match (self.in_head, right) {
                    (true, true) => "<th scope=\"col\" class=\"n\">",
                    (true, false) => "<th scope=\"col\">",
                    (false, true) => "<td class=\"n\">",
                    (false, false) => "<td>",
                };
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        let text = match tag {
            TagEnd::Paragraph => "</p>\n",
            TagEnd::Heading(level) => {
                let (element, anchor) = (element(level), self.anchor());
                let at = self.heading_at.take().unwrap_or(self.text.len());
                self.text.insert_str(at, &format!("<{element} id=\"{anchor}\">"));
                let _ = writeln!(self.text, "</{element}>");
                ""
            }
            TagEnd::List(_) => "</ul>\n",
            TagEnd::Item => "</li>\n",
            TagEnd::CodeBlock => "</pre>\n",
            TagEnd::Strong => "</strong>",
            TagEnd::Emphasis => "</em>",
            TagEnd::Table => "</tbody></table></div>\n",
            TagEnd::TableHead => {
                self.in_head = false;
                "</tr></thead><tbody>\n"
            }
            TagEnd::TableRow => "</tr>\n",
            TagEnd::TableCell if self.in_head => "</th>",
            TagEnd::TableCell => "</td>",
            _ => "",
        };
        self.text += text;
    }
}

/// Sections lie below the page's own headings.
fn element(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H2 => "h3",
        _ => "h4",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_words_of_a_page_become_elements() {
        let page =
            "# Title\n\n## Part (measured)\n\n**So** it is `a<b>`.\n\n| name | time |\n| --- | --: |\n| `k` | 5 ms |\n";
        let shown = html(page, "r");
        assert!(!shown.contains("Title"), "{shown}");
        assert!(shown.contains("<h3 id=\"r-part\">Part (measured)</h3>"), "{shown}");
        assert!(shown.contains("<strong>So</strong> it is <code>a&lt;b&gt;</code>"), "{shown}");
        assert!(shown.contains("<td class=\"n\">5 ms</td>"), "{shown}");
        assert!(
            shown.contains("role=\"group\" aria-label=\"Part (measured)\""),
            "a table is named by its heading: {shown}"
        );
    }

    #[test]
    fn headings_of_the_same_words_have_different_anchors() {
        let shown = html("## A `b`\n\n## A b (c)\n\n## <i>\n", "r");
        let anchors = ["id=\"r-a-b\"", "id=\"r-a-b-2\"", "id=\"r-i\""];
        assert!(anchors.iter().all(|anchor| shown.matches(anchor).count() == 1), "{shown}");
    }

    #[test]
    fn what_a_trace_calls_itself_stays_text() {
        let shown = html("a <script>alert(1)</script> [x](javascript:alert(1)) <img src=x onerror=y>\n", "r");
        assert!(!shown.contains("<script") && !shown.contains("<img") && !shown.contains("href"), "{shown}");
    }
}
