// Makes the doubles that the tests of this crate and of the program share. Included by both.

/// Doubles of CUPTI, of the driver and of an application.
#[allow(dead_code, reason = "each suite takes what it needs")]
pub(crate) struct Doubles {
    pub(crate) cupti: std::path::PathBuf,
    pub(crate) driver: std::path::PathBuf,
    pub(crate) application: std::path::PathBuf,
    /// Folder of doubles of libraries that launch graphs.
    pub(crate) engines: std::path::PathBuf,
}

/// Compiles them from the folder of their sources into another.
pub(crate) fn doubles(source: &std::path::Path, out: &std::path::Path) -> Doubles {
    std::fs::create_dir_all(out).unwrap();
    let done = |mut command: std::process::Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let rust = |name: &str, kind: &str, file: &str| {
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = std::process::Command::new(compiler);
        command.arg(source.join(name)).args(["--edition", "2024", "--crate-type", kind, "-o"]).arg(out.join(file));
        if kind == "cdylib" {
            // A library is known to the loader by this name.
            command.arg(format!("-Clink-arg=-Wl,-soname,{file}"));
        }
        done(command);
        out.join(file)
    };
    let c = |name: &str, file: &str, with: &[&str]| {
        let mut command = std::process::Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1", "-Wl,-z,relro"]).arg("-o").arg(out.join(file)).arg(source.join(name));
        command.args(with).arg(format!("-Wl,-soname,{file}")).arg(format!("-Wl,-rpath,{}", out.display()));
        done(command);
        out.join(file).into_os_string().into_string().unwrap()
    };
    let driver = rust("driver.rs", "cdylib", "libcuda.so.1");
    let cuda = driver.to_str().unwrap();
    let runtime = c("runtime.c", "libcudart.so.13", &[cuda]);
    // Slots that are filled at the first call, those that are only read once the library is loaded, and those of the driver.
    c("engine.c", "libengine_lazy.so", &["-DLAUNCH=cudaGraphLaunch", "-Wl,-z,lazy", &runtime]);
    c("engine.c", "libengine_now.so", &["-DLAUNCH=cudaGraphLaunch", "-fno-plt", "-Wl,-z,now", &runtime]);
    c("engine.c", "libengine_driver.so", &["-DLAUNCH=cuGraphLaunch", "-Wl,-z,now", cuda]);
    Doubles {
        cupti: rust("cupti.rs", "cdylib", "libdouble_cupti.so"),
        application: rust("application.rs", "bin", "application"),
        driver,
        engines: out.to_owned(),
    }
}
