//! PyTorch: a driver in one file of Python, the request it reads, and the events it answers with.
//!
//! The driver is embedded, written next to the run and started with the user's interpreter. It talks on a pipe of its own,
//! so that a model may print what it likes. What the events mean is left to `flow`.

mod event;
mod hub;
mod request;

use std::path::{Path, PathBuf};
use std::time::Duration;

use types::UserError;

use super::Places;
use super::python::{self, NoInterpreter, Python};
use crate::Command;
use crate::error::{CHOOSE_PYTHON, no_python};

pub use event::{
    DeviceEvent, DriverFailure, Event, FailureKind, InputEvent, LoadedEvent, PassName, SampleEvent, TriedEvent,
};
pub use hub::{ModelLocation, locate};
pub use request::{
    Decoding, DriverRequest, InputRequest, ModelRequest, PROTOCOL, Page, Profiler, ProfilerSettings, ResnetSizes,
    TransformerModel, TriesRequest, View,
};

/// The driver.
pub const DRIVER: &str = include_str!("driver.py");

/// Times single operations on a CUDA device; a program of its own, because no model takes part.
pub const CALIBRATE: &str = include_str!("calibrate.py");
/// What it imports where remedies are tried, by the name it is imported as.
pub const TRIES: &str = include_str!("tries.py");

/// How long an interpreter may take to say what it can import.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// Variables that keep a driver from the network: what is not on disk is not there.
const OFFLINE: [(&str, &str); 3] =
    [("HF_HUB_OFFLINE", "1"), ("TRANSFORMERS_OFFLINE", "1"), ("HF_DATASETS_OFFLINE", "1")];

/// The interpreter to use: the one that is named, else `LLM_PERF_PYTHON`, else the first on `PATH` that has torch.
pub fn interpreter(named: Option<&str>) -> Result<PathBuf, UserError> {
    find(&Places { limit: ANSWER_LIMIT, ..Places::of_this_machine() }, named)
}

fn find(places: &Places, named: Option<&str>) -> Result<PathBuf, UserError> {
    let has_torch = |python: &Python| python.torch.is_some() || python.torch_folder.is_some();
    match python::search(places, named, has_torch) {
        Ok((program, _)) => Ok(program),
        Err(NoInterpreter::Absent(named)) => Err(no_python(named.as_deref())),
        Err(NoInterpreter::Lacking(asked)) => {
            let message = format!("no Python interpreter with torch found; tried: {}", asked.join(", "));
            Err(UserError::failed(message).hint(CHOOSE_PYTHON))
        }
    }
}

/// The command that runs the driver in the file `driver` on the request in the file `request`, off the network.
pub fn command(python: &Path, driver: &Path, request: &Path) -> Command {
    let command = Command::new(python, [driver, request]).with_variable("PYTHONUNBUFFERED", "1");
    OFFLINE.into_iter().fold(command, |command, (name, value)| command.with_variable(name, value))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::tool::tests::{fake_program, patient};

    fn answering(torch: &str) -> String {
        format!(
            r#"echo '{{"version":"3.11","executable":"x","torch":{torch},"torch_folder":null,"transformers":null,"cupti":null,"folders":[]}}'"#
        )
    }

    #[test]
    fn the_first_interpreter_on_the_path_that_has_torch_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let [first, second] = ["a", "b"].map(|name| root.path().join(name));
        fake_program(&first, "python3", &answering("null"));
        let wanted = fake_program(&second, "python3", &answering("\"2.11.0\""));
        let places = Places { path: vec![first.clone(), second], ..patient() };
        assert_eq!(find(&places, None).unwrap(), wanted);
        let error = find(&Places { path: vec![first], ..patient() }, None).unwrap_err();
        assert!(error.to_string().starts_with("no Python interpreter with torch found"), "{error}");
        assert!(error.hints[0].contains("--python"));
    }

    #[test]
    fn an_interpreter_that_is_named_is_the_only_one_asked() {
        let root = tempfile::tempdir().unwrap();
        let with = fake_program(&root.path().join("a"), "python3", &answering("\"2.11.0\""));
        let without = fake_program(&root.path().join("b"), "python3", &answering("null"));
        let places = Places { path: vec![root.path().join("a")], ..patient() };
        let lacking = find(&places, without.to_str()).unwrap_err();
        assert!(lacking.message.starts_with("no Python interpreter with torch found"), "{lacking}");
        assert_eq!(find(&Places { python: Some(with.clone()), ..patient() }, None).unwrap(), with);
        let error = find(&places, Some("/nowhere/python")).unwrap_err();
        assert_eq!(error.to_string(), "Python interpreter `/nowhere/python` not found");
        assert_eq!(find(&Places::default(), None).unwrap_err().to_string(), "python3 not found on PATH");
    }

    #[test]
    fn a_driver_is_started_off_the_network() {
        let command = command(Path::new("python3"), Path::new("d.py"), Path::new("r.json"));
        assert_eq!(
            (command.program.as_path(), command.arguments),
            (Path::new("python3"), vec!["d.py".into(), "r.json".into()])
        );
        assert!(command.environment.iter().any(|(name, value)| name == "HF_HUB_OFFLINE" && value == "1"));
    }
}
