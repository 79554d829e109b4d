//! A trace of any kind, all the way: read, analysed and written as a run, or refused with its name. No device is busier than its wall
//! time, the documents can be read again, and the pages command no terminal.

use std::fs;
use std::path::Path;

use config::{Composer, Overrides};
use flow::import::{ImportRequest, MEMORY, NamedSubject, NcuPreset, RegionChoice, WorkloadRequest, import};
use flow::{RunRequest, WorkloadSettings};
use types::{Metrics, Nanos};

/// What a run folder may have: the configuration, the environment and tables of a few rows, and for each byte of a trace so many.
const LEAST_BYTES: u64 = 4 << 20;
const BYTES_PER_BYTE: u64 = 200;

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let trace = folder.path().join("trace");
    fs::write(&trace, bytes).expect("a temporary file");
    let out = folder.path().join("run");
    let imported = match import(&request(&trace), run(&out), "", &mut |_| {}) {
        Ok(imported) => imported,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let (totals, devices) = (&imported.value.times.totals, imported.value.devices.len().max(1) as i64);
    let (busy, wall) = (totals.gpu_busy_ns, totals.wall_ns);
    let is_possible = |(busy, wall): (Nanos, Nanos)| busy.get() / devices <= wall.get();
    assert!(busy.zip(wall).is_none_or(is_possible), "{busy:?} of {wall:?} on {devices}");
    let text = fs::read_to_string(out.join("metrics.json")).expect("a file of the run");
    serde_json::from_str::<Metrics>(&text).expect("what was written can be read");
    let report = fs::read_to_string(out.join("report.md")).expect("a file of the run");
    assert!(!report.contains(['\u{1b}', '\u{7}', '\u{202e}']));
    let written = size(&out);
    assert!(written <= LEAST_BYTES + BYTES_PER_BYTE * bytes.len() as u64, "{} bytes made {written}", bytes.len());
    true
}

/// A run with that folder, in no list of runs.
pub(crate) fn run(out: &Path) -> RunRequest {
    RunRequest {
        root: out.to_owned(),
        id: None,
        out: Some(out.to_owned()),
        index: None,
        verb: "import".to_owned(),
        command: Vec::new(),
        model: None,
        device: None,
    }
}

/// A trace as it would be imported without any option.
pub(crate) fn request(trace: &Path) -> ImportRequest {
    let config = Composer::new(None).and_then(|composer| composer.compose(&Overrides::default()));
    let preset: NcuPreset = config.and_then(|config| config.get("pipeline.ncu")).expect("the built-in files");
    let settings = WorkloadSettings::of_text(1, 1);
    ImportRequest {
        files: vec![trace.to_owned()],
        subject: NamedSubject {
            name: None,
            model: None,
            workload: WorkloadRequest { settings, profile: None, overridden: Vec::new() },
            hardware: None,
            config_dir: None,
        },
        regions: RegionChoice::new(&preset).expect("the built-in patterns"),
        tables: None,
        requests: None,
        memory: MEMORY,
    }
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder of the run").map(|entry| entry.expect("an entry").path());
    entries.map(|path| if path.is_dir() { size(&path) } else { path.metadata().expect("a file").len() }).sum()
}
