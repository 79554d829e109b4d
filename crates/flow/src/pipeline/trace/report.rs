//! Reports of Nsight Systems and Nsight Compute, whose own formats only these tools read: the installed tool exports them.

use crate::pipeline::scratch::scratch_folder;
use std::fs::File;
use std::path::Path;

use collect::process::{Interrupt, Limits, Process};
use collect::tool::ncu::{self, Page};
use collect::tool::{InstalledTool, nsys};
use collect::{Command, Output};
use types::UserError;

/// Lines of a tool that a message shows.
const SHOWN: usize = 8;
/// Most that is kept of what a tool says beside its export.
const KEPT: usize = 1 << 16;

/// Which tool wrote a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// `.nsys-rep`, before 2021.4 `.qdrep`.
    Nsys,
    /// `.ncu-rep`.
    Ncu,
}

impl Report {
    /// What a file is by its ending, or by its first bytes.
    pub(super) fn of(path: &Path, bytes: &[u8]) -> Option<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("nsys-rep" | "qdrep") => Some(Self::Nsys),
            Some("ncu-rep") => Some(Self::Ncu),
            _ => bytes.starts_with(b"NVR\0").then_some(Self::Ncu),
        }
    }

    const fn tool(self) -> &'static str {
        match self {
            Self::Nsys => "nsys",
            Self::Ncu => "ncu",
        }
    }

    /// What to type where the tool is.
    fn by_hand(self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Nsys => format!("nsys export --type sqlite {path}"),
            Self::Ncu => format!("ncu --import {path} --page raw --csv > counters.csv"),
        }
    }

    fn command(self, tool: &InstalledTool, report: &Path, export: &Path) -> Command {
        match self {
            Self::Nsys => {
                let kept = Output::Kept(KEPT);
                nsys::export_sqlite(&tool.path, report, export).with_output(kept.clone(), kept)
            }
            // Numbers in another language's form would be off by a thousand.
            Self::Ncu => ncu::print_page(&tool.path, report, Page::Raw)
                .with_variable("LC_ALL", "C")
                .with_output(Output::File(export.to_owned()), Output::Kept(KEPT)),
        }
    }

    /// The report as a file that can be read, which nothing else refers to any more.
    pub(super) fn exported(self, report: &Path, progress: &mut dyn FnMut(&str)) -> Result<File, UserError> {
        let (file, by_hand) = (report.display(), self.by_hand(report));
        let found = match self {
            Self::Nsys => nsys::serving(None),
            Self::Ncu => ncu::serving(None),
        };
        let tool = found.map_err(|shortfall| {
            let name = self.tool();
            UserError::failed(format!("reading {file} requires {name}: {}", shortfall.found))
                .hint(format!("export it where {name} is installed, then import the result: `{by_hand}`"))
        })?;
        progress(&format!("exporting {} with {}", report.display(), self.tool()));
        let unreadable = UserError::io("read", report);
        let folder = scratch_folder().map_err(&unreadable)?;
        let export = folder.path().join("export");
        let command = self.command(&tool, report, &export);
        let finished = Process::start(&command)?.wait(&Limits::default(), Interrupt::Forwarded)?;
        let has_export = export.metadata().is_ok_and(|found| found.len() > 0);
        if !finished.succeeded() || !has_export {
            let said: String = finished.last_lines(SHOWN).iter().map(|line| format!("\n  | {line}")).collect();
            let ending = if finished.succeeded() { "wrote no export".to_owned() } else { finished.ending.to_string() };
            return Err(UserError::failed(format!("cannot export {file}: `{command}` {ending}{said}"))
                .hint(format!("export it with the release that recorded it, then import the result: `{by_hand}`")));
        }
        // Open, the file outlives its folder.
        File::open(&export).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_known_by_its_ending_or_its_first_bytes() {
        assert_eq!(Report::of("a/run.nsys-rep".as_ref(), b""), Some(Report::Nsys));
        assert_eq!(Report::of("run.qdrep".as_ref(), b""), Some(Report::Nsys));
        assert_eq!(Report::of("run.ncu-rep".as_ref(), b""), Some(Report::Ncu));
        assert_eq!(Report::of("-".as_ref(), b"NVR\0\x08"), Some(Report::Ncu));
        assert_eq!(Report::of("nsys-rep.sqlite".as_ref(), b"SQLite format 3\0"), None);
    }
}
