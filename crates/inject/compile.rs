// Makes the shared library out of this crate and `wire`, without cargo. Included by the build script of `collect`, which
// embeds the result, and by the tests here.
//
// Two calls of the compiler do what a package of type `cdylib` cannot: the library has no standard library, so that it links
// nothing but libc and the loader; it aborts instead of unwinding, which cargo sets for whole workspaces only; and it is
// optimised in debug builds too, because other programs run inside of it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// File name of the library.
pub(crate) const LIBRARY: &str = "libllm_perf_inject.so";

/// Compiles the library into `out`. `crates` is the folder that holds `inject` and `wire`; `version` is the tool's.
pub(crate) fn library(compiler: &Path, crates: &Path, out: &Path, target: Option<&str>, version: &str) -> Result<PathBuf, String> {
    let common = |source: &str, name: &str| {
        let mut command = Command::new(compiler);
        command.arg(crates.join(source)).args(["--edition", "2024", "--crate-name", name]);
        command.args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "codegen-units=1", "-C", "debuginfo=0"]);
        command.args(["--cap-lints", "allow"]).arg("--out-dir").arg(out).env("CARGO_PKG_VERSION", version);
        if let Some(target) = target {
            command.args(["--target", target]);
        }
        command
    };
    run(common("wire/src/lib.rs", "wire").args(["--crate-type", "rlib"]))?;
    let mut library = common("inject/src/lib.rs", "llm_perf_inject");
    library.args(["--crate-type", "cdylib", "--cfg", "injected_library", "-C", "lto=fat", "-C", "strip=symbols"]);
    // Resolved when it is loaded, so that no call of the application pays for the first use of a function.
    library.args(["-C", "link-arg=-Wl,-z,now", "-C", "link-arg=-Wl,--as-needed"]);
    library.arg("--extern").arg(format!("wire={}", out.join("libwire.rlib").display()));
    run(&mut library)?;
    Ok(out.join(LIBRARY))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr)))
}
