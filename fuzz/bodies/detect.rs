//! The beginning of any file: its format is told or it is not, also through gzip and zstd, and what was told stays so when
//! all of the file is seen.

use ingest::detect::{Detection, detect, identify};

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let identity = identify(bytes);
    assert_ne!(detect(bytes, true), Detection::NeedMore);
    if identity.compression.is_none() {
        let whole = detect(bytes, true);
        assert_eq!(identity.format.map_or(Detection::Unknown, Detection::Known), whole);
    }
    identity.format.is_some()
}
