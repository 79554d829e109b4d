//! Several ranks of one run: rank 0 owns the run folder, the others leave their part in it.
//!
//! Ranks meet in the folder and nowhere else. A part is a folder `ranks/N` with what that rank's driver was asked, what it
//! said and what it recorded; its last file to appear, whole, is the driver's events.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use analysis::RankRuns;
use collect::Output;
use collect::rank::Rank;
use collect::run::RunFolder;
use collect::tool::torch::{self, DRIVER, PassName};
use types::{Sample, UserError};

use super::torch_evidence::device_id;
use super::torch_plan::TorchProfile;
use crate::pipeline::progress::Progress;
use crate::runner::error::driver as driver_failed;
use crate::runner::inputs::Inputs;
use crate::runner::torch::session::{self, Session};
use crate::runner::torch::{question, question_text, scratch};

/// How long a rank waits for another. Ranks load the same model at the same time, so that minutes apart mean trouble.
const PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(50);

/// Last file of a part.
const EVENTS: &str = "torch-events.jsonl";

/// Optional files of a part.
const FILES: [&str; 5] = ["torch-driver.py", "torch-request.json", "torch.stdout", "torch.stderr", "torch.json.gz"];

/// Runs this rank's driver and leaves its part in the folder of rank 0.
pub(super) fn leave_part(
    out: &Path,
    rank: Rank,
    given: &TorchProfile<'_>,
    inputs: &mut Inputs,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Sample>, UserError> {
    progress(Progress::Doing("waiting for rank 0"));
    let manifest = out.join("manifest.json");
    wait(stop, || manifest.is_file()).ok_or_else(|| {
        let (out, patience) = (out.display(), PATIENCE.as_secs());
        UserError::failed(format!("rank 0: it has not created the run folder {out} within {patience} s"))
    })?;
    let folder = out.join("ranks").join(rank.rank.to_string());
    std::fs::create_dir_all(&folder).map_err(UserError::unreadable(&folder))?;
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let scratch = scratch()?;
    let trace = given.request.torch.profiler.enabled.then(|| folder.join("torch.json.gz"));
    let asked = question::ask(given.model, given.request, inputs, scratch.path(), trace)?;
    let [driver, request, stdout, stderr, _] = FILES.map(|name| folder.join(name));
    std::fs::write(&driver, DRIVER).map_err(UserError::unreadable(&driver))?;
    std::fs::write(&request, question_text(&asked)).map_err(UserError::unreadable(&request))?;
    let command =
        torch::command(&given.python, &driver, &request).with_output(Output::File(stdout), Output::File(stderr));
    let (session, ending) = session::run(&command, progress, stop)?;
    let (written, whole) = (folder.join("events.part"), folder.join(EVENTS));
    std::fs::write(&written, &session.lines)
        .and_then(|()| std::fs::rename(&written, &whole))
        .map_err(UserError::unreadable(&whole))?;
    if let Some((kind, message)) = session.trouble(ending) {
        let traceback = session.failure.clone().and_then(|failure| failure.traceback);
        return Err(driver_failed(kind, message, traceback));
    }
    Ok(session.samples(|pass| pass != PassName::Profile, Some(rank.rank)))
}

/// Waits for the parts of the others and reads their samples. Gives back what is missing too.
pub(super) fn gather(
    folder: &mut RunFolder,
    rank: Rank,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(RankRuns, Vec<String>), UserError> {
    let mut others = Vec::new();
    let mut missing = Vec::new();
    for other in 1..rank.world {
        progress(Progress::Doing(&format!("waiting for rank {other}")));
        let part = PathBuf::from("ranks").join(other.to_string());
        let events = folder.path().join(&part).join(EVENTS);
        let Some(()) = wait(stop, || events.is_file()) else {
            missing.push(format!("rank {other} wrote nothing within {} s", PATIENCE.as_secs()));
            continue;
        };
        let text = std::fs::read_to_string(&events).map_err(UserError::unreadable(&events))?;
        for name in FILES.into_iter().chain([EVENTS]) {
            if folder.path().join(&part).join(name).is_file() {
                folder.adopt(&part.join(name).to_string_lossy())?;
            }
        }
        let session = Session::read(&text);
        let samples = session.samples(|pass| pass != PassName::Profile, Some(other));
        if !session.done {
            let why = session.failure.as_ref().map_or("it ended early", |failure| failure.message.as_str());
            missing.push(format!("rank {other}: {why}"));
        }
        let device = session.device.as_ref().map(|device| device_id(&device.id));
        others.push((other, device, samples));
    }
    Ok((RankRuns { own: rank.rank, others }, missing))
}

fn wait(stop: &dyn Fn() -> bool, there: impl Fn() -> bool) -> Option<()> {
    let deadline = Instant::now() + PATIENCE;
    while !there() {
        if stop() || Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
    Some(())
}
