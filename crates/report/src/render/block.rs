//! Blocks: what a page is made of.

use super::table::Table;
use super::text::Text;

/// A part of a page.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// Starts a section (2) or a part of one (3).
    Heading {
        /// How deep.
        level: u8,
        /// Its words.
        text: Text,
    },
    /// A paragraph.
    Sentence(Text),
    /// What a reader must not miss.
    Callout {
        /// What it is.
        title: &'static str,
        /// One thing each.
        lines: Vec<Text>,
    },
    /// Items in no order.
    List(Vec<Text>),
    /// Items in their order.
    Steps(Vec<Text>),
    /// Names with their values.
    Facts(Vec<(&'static str, Text)>),
    /// Rows under heads.
    Table(Table),
    /// Lines as they are.
    Code {
        /// What they are written in.
        language: &'static str,
        /// The lines, each with its end.
        lines: Vec<String>,
    },
    /// A picture in a file beside the page.
    Chart {
        /// What it shows.
        title: String,
        /// Where it is.
        file: String,
    },
}
