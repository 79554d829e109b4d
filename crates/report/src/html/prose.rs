//! Markdown pages as HTML: the words and tables are those of the pages beside it.
//!
//! Only what our own pages use is turned into elements; HTML in them stays text, so that a name from a trace can do no harm.
//! Nothing here needs a style attribute, which the page's policy forbids.

use std::fmt::Write;

use pulldown_cmark::{Alignment, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::escape::escape;

/// The page without its title; headings get `prefix` and their number as their anchor.
pub(super) fn html(markdown: &str, prefix: &str) -> String {
    let mut page = Body {
        text: String::new(),
        prefix,
        headings: 0,
        heading: String::new(),
        in_heading: false,
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
    headings: usize,
    /// The words of the last heading, which name the tables below it.
    heading: String,
    in_heading: bool,
    alignments: Vec<Alignment>,
    /// Column of the next cell.
    cell: usize,
    /// Inside the first row of a table.
    in_head: bool,
    /// Inside the title, which the page has already.
    quiet: bool,
}

impl Body<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => self.quiet = true,
            Event::End(TagEnd::Heading(HeadingLevel::H1)) => self.quiet = false,
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
        if self.in_heading {
            self.heading += text;
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Paragraph => self.text += "<p>",
            Tag::Heading { level, .. } => {
                self.headings += 1;
                (self.heading, self.in_heading) = (String::new(), true);
                let _ = write!(self.text, "<{} id=\"{}-{}\">", element(*level), self.prefix, self.headings);
            }
            Tag::List(_) => self.text += "<ul>\n",
            Tag::Item => self.text += "<li>",
            Tag::CodeBlock(_) => self.text += "<pre>",
            Tag::Strong => self.text += "<strong>",
            Tag::Emphasis => self.text += "<em>",
            Tag::Table(alignments) => {
                self.alignments.clone_from(alignments);
                let label = if self.heading.is_empty() { "table" } else { &escape(&self.heading) };
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
                self.in_heading = false;
                if level == HeadingLevel::H2 { "</h3>\n" } else { "</h4>\n" }
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
        let page = "# Title\n\n## Part\n\n**So** it is `a<b>`.\n\n| name | time |\n| --- | --: |\n| `k` | 5 ms |\n";
        let shown = html(page, "r");
        assert!(!shown.contains("Title"), "{shown}");
        assert!(shown.contains("<h3 id=\"r-1\">Part</h3>"), "{shown}");
        assert!(shown.contains("<strong>So</strong> it is <code>a&lt;b&gt;</code>"), "{shown}");
        assert!(shown.contains("<td class=\"n\">5 ms</td>"), "{shown}");
        assert!(shown.contains("role=\"group\" aria-label=\"Part\""), "a table is named by its heading: {shown}");
    }

    #[test]
    fn what_a_trace_calls_itself_stays_text() {
        let shown = html("a <script>alert(1)</script> [x](javascript:alert(1)) <img src=x onerror=y>\n", "r");
        assert!(!shown.contains("<script") && !shown.contains("<img") && !shown.contains("href"), "{shown}");
    }
}
