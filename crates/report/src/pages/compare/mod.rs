//! A comparison written down, for the terminal and as Markdown. What changed and how sure that is comes from the document;
//! here it is arranged, rounded and put into words.

mod markdown;
mod phrase;
#[cfg(test)]
pub(crate) mod sample;
mod stages;
mod terminal;

pub(crate) use markdown::conclusions_page;
pub use markdown::page;
pub use stages::stages_terminal;
pub use terminal::terminal;
