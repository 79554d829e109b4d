//! Small pictures of a run's inputs, which its page shows.
//!
//! Each is a file of the run, named after the digest of the image that it is of. A run without them has a page without pictures:
//! a redacted bundle leaves them out.

use std::path::Path;

use crate::pipeline::recorded::provenance::{self, INPUTS};
use report::html::Thumbnail;

/// The folder of the files.
pub(crate) const FOLDER: &str = "thumbnails";

/// Inputs that have a picture: more are no use on a page.
pub(crate) const MOST: usize = 12;

/// A picture larger than this is none.
const MOST_BYTES: u64 = 64 << 10;

/// The file of an image with a digest.
pub(crate) fn file(sha256: &str) -> String {
    format!("{FOLDER}/{}.jpg", sha256.chars().take(16).collect::<String>())
}

/// Those of a run folder, in the order of its inputs.
pub(crate) fn read(folder: &Path) -> Vec<Thumbnail> {
    let text = std::fs::read_to_string(folder.join(INPUTS)).unwrap_or_default();
    let images = provenance::read(&text).map(|inputs| inputs.images).unwrap_or_default();
    let used = images.into_iter().filter(|image| image.used);
    let read = used.filter_map(|image| {
        let path = folder.join(file(image.sha256.as_deref()?));
        let is_small = path.metadata().is_ok_and(|found| found.is_file() && found.len() <= MOST_BYTES);
        Some(Thumbnail { input: image.name, jpeg: is_small.then(|| std::fs::read(path).ok())?? })
    });
    read.take(MOST).collect()
}
