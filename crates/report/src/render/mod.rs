//! Rendering: blocks as Markdown, HTML and text for a terminal. Nothing here knows what a page is about.

mod block;
pub(crate) mod escape;
mod html;
mod markdown;
mod page;
pub(crate) mod table;
mod terminal;
pub(crate) mod text;
mod wrap;

pub(crate) use block::Block;
pub use page::Page;
pub use table::{Table, harmless, printable};
pub use wrap::wrapped;

/// One line of the notation as HTML.
pub(crate) fn html_line(notation: &str) -> String {
    html::line(&text::Text::new(notation))
}
