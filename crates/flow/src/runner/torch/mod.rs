//! A model in the user's own PyTorch, run by a driver of ours ([`collect::tool::torch`]).
//!
//! [`model`] says which one, [`question`] prepares its inputs and asks, [`session`] hears what the driver answers, and
//! [`driver_run`] is both beside each other.

pub(crate) mod driver_run;
pub(crate) mod model;
pub(crate) mod question;
pub(crate) mod session;

use std::path::Path;

use collect::Command;
use collect::tool::torch::{self, DRIVER, interpreter};
use types::{DType, UserError};

use super::bare::BareRun;
use super::error::{driver as driver_failed, wrong_setting};
use super::inputs;
use super::request::ProfileRequest;
use crate::pipeline::model::element_type as known_type;
use crate::pipeline::progress::Progress;
use crate::pipeline::scratch::scratch_folder;
pub use collect::tool::torch::ProfilerSettings;
pub use model::{TorchModel, TorchName, TorchSource, has_weights};

use driver_run::DriverRun;
use question::Question;

/// Settings of PyTorch, apart from model and inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchSettings {
    /// The interpreter; absent: the first that has torch.
    pub python: Option<String>,
    /// Whether a model's own code may run.
    pub trust_remote_code: bool,
    /// Depth to which modules get ranges.
    pub module_ranges: u32,
    /// Whether the modelled FLOPs are checked against torch's counter.
    pub check_flops: bool,
    /// Which attention; absent: the library's choice.
    pub attention: Option<String>,
    /// Element type as torch calls it; absent: as the config says.
    pub dtype: Option<String>,
    /// The profiled pass.
    pub profiler: ProfilerSettings,
    /// Device of the catalogue whose rates apply; absent: found from the device.
    pub hardware: Option<String>,
}

/// What to profile.
#[derive(Clone, Debug)]
pub struct TorchRequest {
    /// What every engine is told.
    pub profile: ProfileRequest,
    /// Settings of this one.
    pub torch: TorchSettings,
}

/// Runs warm-up and repeats with ranges around stages, and nothing recorded or kept; where `trace` is named, also under
/// torch.profiler, whose trace goes there.
pub fn bare(
    model: &TorchModel,
    request: &TorchRequest,
    trace: Option<&Path>,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<BareRun, UserError> {
    let scratch = scratch()?;
    let (command, asked) = prepare(model, request, scratch.path(), trace)?;
    let (session, ending) = session::run(&command, progress, stop)?;
    if let Some((kind, message)) = session.trouble(ending) {
        let traceback = session.failure.and_then(|failure| failure.traceback);
        return Err(driver_failed(kind, message, traceback));
    }
    Ok(DriverRun { model, request, question: &asked, session: &session, named: None }.ran())
}

/// Writes what the interpreter is given into `folder`; what comes back starts it.
pub(crate) fn prepared(model: &TorchModel, request: &TorchRequest, folder: &Path) -> Result<Command, UserError> {
    Ok(prepare(model, request, folder, None)?.0)
}

/// Writes what the interpreter is given into `folder`, for a run with ranges around stages: the driver, what it is asked and
/// the inputs. What comes back starts it, and says what it is asked.
fn prepare(
    model: &TorchModel,
    request: &TorchRequest,
    folder: &Path,
    trace: Option<&Path>,
) -> Result<(Command, Question), UserError> {
    check(request)?;
    let mut inputs = inputs::find(&request.profile.dataset, &request.profile.infer)?;
    inputs.usable()?;
    let python = interpreter(request.torch.python.as_deref())?;
    std::fs::create_dir_all(folder).map_err(UserError::io("create folder", folder))?;
    let mut asked = question::ask(model, request, &mut inputs, folder, trace.map(Path::to_owned))?;
    // The profiler has ranges of its own.
    asked.request.nvtx = trace.is_none();
    let [driver, question] = ["driver.py", "request.json"].map(|name| folder.join(name));
    std::fs::write(&driver, DRIVER).map_err(UserError::io("write", &driver))?;
    std::fs::write(&question, question_text(&asked)).map_err(UserError::io("write", &question))?;
    Ok((torch::command(&python, &driver, &question), asked))
}

/// Refuses what the driver cannot run.
pub(crate) fn check(request: &TorchRequest) -> Result<(), UserError> {
    request.profile.check()?;
    let device = &request.profile.device;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let known = matches!(device.as_str(), "cpu" | "auto" | "cuda") || device.strip_prefix("cuda:").is_some_and(number);
    if !known {
        let expected = "`cpu`, `cuda:N` or `auto`";
        return Err(wrong_setting("device", expected, &format!("`{device}`")));
    }
    if let Some(decoding) = request.profile.infer.decoding().filter(|decoding| decoding.temperature > 0.0) {
        let (expected, found) = ("0: this engine always takes the most likely token", decoding.temperature.to_string());
        return Err(wrong_setting("infer.temperature", expected, &found));
    }
    Ok(())
}

/// What torch calls an element type.
pub fn element_type(name: &str) -> Result<String, UserError> {
    let torch = match known_type(name)? {
        DType::Fp32 => "float32",
        DType::Bf16 => "bfloat16",
        DType::Fp16 => "float16",
        other => {
            let expected = "float32, bfloat16 or float16";
            return Err(wrong_setting("model.dtype", expected, &other.to_string()));
        }
    };
    Ok(torch.to_owned())
}

pub(crate) fn scratch() -> Result<tempfile::TempDir, UserError> {
    scratch_folder().map_err(UserError::unreadable(&std::env::temp_dir()))
}

pub(crate) fn question_text(asked: &Question) -> String {
    serde_json::to_string_pretty(&asked.request).unwrap_or_default() + "\n"
}
