//! The region report written down: the overview, a page, a text and a table for each region, and the terminal.
//!
//! Everything comes from the document and the pages it was made of; here it is arranged, rounded and put into words.

mod kernels;
mod overview;
mod parts;
mod region;
#[cfg(test)]
pub(crate) mod sample;
mod sections;
mod terminal;
mod value;

pub use kernels::kernels_csv;
pub(crate) use overview::caveats;
pub use overview::overview_page;
pub use region::region_page;
pub use sections::sections_text;
pub use terminal::regions_terminal;
