//! A comparison written down: what may mislead, what changed, and how sure that is. Verdicts come from the document; here they are
//! arranged, rounded and put into words.

mod caveats;
mod page;
mod phrase;
#[cfg(test)]
pub(crate) mod sample;

pub(crate) use caveats::{Comparability, caveats, comparability};
pub(crate) use page::conclusions;
pub use page::{page, stages_terminal, terminal};
pub(crate) use phrase::{depth, name};
