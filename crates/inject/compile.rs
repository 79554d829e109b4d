// Makes the shared library out of this crate and `wire`, without cargo. Included by the build script of `collect`, which
// embeds the result, and by the tests here.
//
// Two calls of the compiler do what a package of type `cdylib` cannot: the library has no standard library, so that it links
// nothing but libc and the loader; it aborts instead of unwinding, which cargo sets for whole workspaces only; and it is
// optimised in debug builds too, because other programs run inside of it.

/// File name of the library.
pub(crate) const LIBRARY: &str = "libllm_perf_inject.so";

/// What to compile with, and where.
pub(crate) struct Compiler<'a> {
    /// `rustc`.
    pub(crate) program: &'a std::path::Path,
    /// The linker, where it is not the usual one.
    pub(crate) linker: Option<&'a std::path::Path>,
    /// The machine to compile for, where it is not this one.
    pub(crate) target: Option<&'a str>,
    /// The folder that holds `inject` and `wire`.
    pub(crate) crates: &'a std::path::Path,
    /// The folder for the result.
    pub(crate) out: &'a std::path::Path,
    /// Version of the tool.
    pub(crate) version: &'a str,
}

/// Compiles the library; its path.
pub(crate) fn library(with: &Compiler<'_>) -> Result<std::path::PathBuf, String> {
    let common = |source: &str, name: &str| {
        let mut command = std::process::Command::new(with.program);
        command.arg(with.crates.join(source)).args(["--edition", "2024", "--crate-name", name]);
        command.args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "codegen-units=1", "-C", "debuginfo=0"]);
        command.args(["--cap-lints", "allow"]).arg("--out-dir").arg(with.out).env("CARGO_PKG_VERSION", with.version);
        if let Some(target) = with.target {
            command.args(["--target", target]);
        }
        if let Some(linker) = with.linker {
            command.arg("-C").arg(format!("linker={}", linker.display()));
        }
        command
    };
    run(common("wire/src/lib.rs", "wire").args(["--crate-type", "rlib"]))?;
    let mut library = common("inject/src/lib.rs", "llm_perf_inject");
    library.args(["--crate-type", "cdylib", "--cfg", "injected_library", "-C", "lto=fat", "-C", "strip=symbols"]);
    // Resolved when it is loaded, so that no call of the application pays for the first use of a function.
    library.args(["-C", "link-arg=-Wl,-z,now", "-C", "link-arg=-Wl,--as-needed"]);
    library.arg("--extern").arg(format!("wire={}", with.out.join("libwire.rlib").display()));
    run(&mut library)?;
    Ok(with.out.join(LIBRARY))
}

fn run(command: &mut std::process::Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}\n{command:?}", String::from_utf8_lossy(&output.stderr).trim()))
}
