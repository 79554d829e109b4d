//! Doubles of CUPTI, of the driver and of a CUDA application.

use std::path::Path;
use std::sync::OnceLock;

mod make {
    include!("../../../inject/tests/double/make.rs");
}

pub(crate) use make::Doubles;

/// The doubles of the collector's own tests, compiled once.
pub(crate) fn doubles() -> &'static Doubles {
    static MADE: OnceLock<Doubles> = OnceLock::new();
    MADE.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("doubles-{}", std::process::id()));
        make::doubles(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../inject/tests/double"), &out)
    })
}
