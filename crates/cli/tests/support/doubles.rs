//! Doubles of CUPTI and of a CUDA application.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The doubles of the collector's own tests, compiled once: CUPTI and the application.
pub(crate) fn doubles() -> &'static (PathBuf, PathBuf) {
    static MADE: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    MADE.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("doubles-{}", std::process::id()));
        std::fs::create_dir_all(&out).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../inject/tests/double");
        let make = |name: &str, kind: &str, file: &str| {
            let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            let mut command = Command::new(compiler);
            command.arg(source.join(name)).args(["--edition", "2024", "--crate-type", kind, "-o"]).arg(out.join(file));
            let done = command.output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            out.join(file)
        };
        (make("cupti.rs", "cdylib", "libdouble_cupti.so"), make("application.rs", "bin", "application"))
    })
}
