//! What goes wrong in more than one place of a run.

use std::path::Path;

use collect::tool::torch::FailureKind;
use types::{Exit, UserError};

/// A setting out of range.
pub(crate) fn wrong_setting(key: &str, expected: &str, found: &str) -> UserError {
    UserError::usage(format!("{key} is {found}; it must be {expected}"))
}

/// An input that is not what the network takes.
pub(super) fn wrong_feed(name: &str) -> UserError {
    UserError::failed(format!("this model does not accept {name}"))
}

/// Inputs, but none that can be used.
pub(super) fn no_usable_inputs(count: usize, problem: &str) -> UserError {
    UserError::failed(format!("none of the {count} inputs can be used; the first: {problem}"))
}

/// A config.json that is none.
pub(super) fn bad_config(path: &Path, reason: &str) -> UserError {
    UserError::usage(format!("{} is not a valid config.json: {reason}", path.display()))
}

/// The user stopped the run.
pub(crate) fn stopped(done: u64, total: u64) -> UserError {
    UserError::failed(format!("stopped by the user after {done} of {total} inferences"))
}

/// The Python driver gave up, perhaps with a place in Python.
pub(crate) fn driver(kind: FailureKind, message: String, traceback: Option<String>) -> UserError {
    let traceback = traceback.iter().flat_map(|text| text.trim_end().lines());
    let exit = match kind {
        FailureKind::RemoteCode | FailureKind::Device | FailureKind::Settings => Exit::Usage,
        _ => Exit::Failed,
    };
    let error = UserError::failed(message).exiting(exit).quoting(traceback);
    match driver_hint(kind) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// What a user can do about a driver that gave up.
fn driver_hint(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::Torch => "pass an interpreter that has torch: --python PATH",
        FailureKind::Transformers => "install transformers for that interpreter, or pass another one: --python PATH",
        FailureKind::RemoteCode => "read the code, then allow it with --trust-remote-code",
        FailureKind::Config => "for a model with its own code, pass the folder with that code and --trust-remote-code",
        FailureKind::Memory => {
            "reduce memory: fewer tokens (infer.max_new_tokens, infer.seq_len), a smaller batch, or \
             model.dtype=bfloat16"
        }
        FailureKind::Import => "install the missing package, or pass another interpreter: --python PATH",
        FailureKind::Factory => {
            "a factory takes no arguments and returns a torch.nn.Module, or a module and its inputs"
        }
        FailureKind::Pictures => "use a factory: --model module:factory",
        FailureKind::Settings => "use infer.logits=all",
        FailureKind::Device | FailureKind::Stopped | FailureKind::Model => return None,
    })
}
