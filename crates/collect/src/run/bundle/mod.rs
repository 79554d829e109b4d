//! A packed run: one file that holds a run folder, and the way back.
//!
//! A bundle is a gzip-compressed tar archive, so that any machine can look into it. Its first member is `bundle.json`
//! ([`types::BundleIndex`]), which names every member behind it in order, with size and SHA-256. Nothing else in the archive
//! is interpreted: each header has to be, byte for byte, the one that the index makes necessary. Links, folders, owners, modes
//! and other paths can therefore not be expressed. The same run gives the same bytes.
//!
//! What is worth packing, and what is redacted, is decided by whoever packs.

mod member;
mod reader;
mod unpack;
mod writer;

pub use reader::Bundle;
pub use unpack::unpack;
pub use writer::write_bundle;

/// Name of the first member.
const INDEX: &str = "bundle.json";

/// Ending of the file.
pub const BUNDLE_ENDING: &str = "llmperf";

/// Most files and bytes that a bundle may have. Runs with traces of many ranks have a hundredth of it.
const MOST_FILES: usize = 100_000;
const MOST_BYTES: u64 = 1 << 36;
/// Most bytes of its index: enough for the files above.
const MOST_INDEX_BYTES: u64 = 1 << 26;
