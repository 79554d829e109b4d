//! Makes a run folder the way the tool does, so that tests can kill it, race it and take its disk away.
//!
//!     run-folder-writer steps ROOT SEED     write without end; one line on standard output after each step
//!     run-folder-writer once ROOT           make a run, end it, print its name
//!     run-folder-writer limited ROOT BYTES  write one file of twice that size under a limit on the size of files

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use collect::run::{Outcome, RunFolder, RunRequest};
use types::{Random, UserError};

/// Names the writer uses again and again, so that files are replaced as well as added.
const NAMES: [&str; 8] = [
    "env.json",
    "metrics.json",
    "report.md",
    "logs/stdout.txt",
    "logs/stderr.txt",
    "trace/0/part.bin",
    "static_analysis/analytic_model/layers/a.md",
    "static_analysis/analytic_model/report.json",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["steps", root, seed] => steps(Path::new(root), seed.parse()?)?,
        ["once", root] => once(Path::new(root))?,
        ["limited", root, bytes] => limited(Path::new(root), bytes.parse()?)?,
        _ => return Err("usage: run-folder-writer steps ROOT SEED | once ROOT | limited ROOT BYTES".into()),
    }
    Ok(())
}

fn create(root: &Path) -> Result<RunFolder, UserError> {
    RunFolder::create(RunRequest { root: root.to_owned(), ..RunRequest::new("test", std::env::args_os().collect()) })
}

fn steps(root: &Path, seed: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut random = Random::new(seed);
    let mut folder = create(root)?;
    for step in 0_u64.. {
        for file in 0..=random.below(3) {
            let content = content(&mut random);
            if random.below(4) == 0 {
                // As a child process would: straight to its place, not whole at every moment.
                let name = format!("nsys/{step}-{file}.sqlite");
                fs::write(folder.prepare(&name)?, content)?;
                folder.adopt(&name)?;
            } else {
                let name = NAMES[random.below(NAMES.len())];
                folder.write_with(name, |out| content.chunks(1000).try_for_each(|piece| out.write_all(piece)))?;
            }
        }
        folder.end_step(&format!("step {step}"))?;
        writeln!(io::stdout().lock(), "step {step}")?;
    }
    Ok(())
}

/// Nothing, a little, or more than one buffer full.
fn content(random: &mut Random) -> Vec<u8> {
    let size = match random.below(4) {
        0 => 0,
        1 => random.below(200),
        2 => random.below(10_000),
        _ => random.below(150_000),
    };
    let byte = random.number() as u8;
    (0..size).map(|place| byte.wrapping_add(place as u8)).collect()
}

fn once(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let folder = create(root)?;
    let id = folder.id().to_owned();
    folder.finish(Outcome::Complete)?;
    writeln!(io::stdout().lock(), "{id}")?;
    Ok(())
}

fn limited(root: &Path, bytes: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut folder = create(root)?;
    folder.write_file("before.txt", b"written before the limit")?;
    limit_file_size(bytes)?;
    let Err(error) = folder.write_file("large.bin", &vec![7; 2 * bytes as usize]) else {
        return Err("a file larger than the limit was written".into());
    };
    writeln!(io::stdout().lock(), "{error}\n{}", error.hints.join("\n"))?;
    folder.fail(error.to_string())?;
    Ok(())
}

/// From here on a write past `bytes` fails with `EFBIG`, which reaches a program as `ENOSPC` does: in the middle of a file.
fn limit_file_size(bytes: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: ignoring a signal installs no handler; `limit` lives across the call that reads it.
    let failed = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::setrlimit(libc::RLIMIT_FSIZE, &limit)
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
