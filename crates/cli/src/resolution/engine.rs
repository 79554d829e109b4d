//! Which engine runs a model: the one that is named, else the one that suits the machine.

use std::ffi::OsString;

use config::Overrides;
use flow::target::{Engine, choose_engine};
use flow::torch::TorchName;
use types::{Named, UserError};

use crate::context::Context;
use crate::target::{EngineName, TargetArguments};

/// The engine, for a verb that takes any. Where nobody names one, the first line of the run says which it is and why.
pub(crate) fn choose(arguments: &TargetArguments, given: &Overrides, context: &Context) -> Result<Engine, UserError> {
    let (engine, reason) = resolve(arguments, given, context)?;
    if let Some(reason) = reason {
        context.messages.note(format!("engine: {} ({reason})", engine.name()));
    }
    Ok(engine)
}

/// The engine, for a verb that profiles a GPU; one that cannot use it is refused before anything starts.
pub(crate) fn choose_for_gpu(
    verb: &str,
    arguments: &TargetArguments,
    given: &Overrides,
    context: &Context,
) -> Result<Engine, UserError> {
    if device(arguments, given).as_deref() == Some("cpu") {
        return Err(UserError::usage(format!("`{verb}` profiles a GPU, but the device is cpu"))
            .hint("use --device cuda:0, or run `llm-perf profile` on the CPU"));
    }
    match resolve(arguments, given, context)? {
        (Engine::Native, None) => {
            Err(UserError::usage(format!("`{verb}` profiles a GPU, but the native engine runs on the CPU"))
                .hint("use --engine torch to run the same models on a GPU, or put your own command after `--`"))
        }
        (Engine::Native, Some(reason)) => {
            Err(UserError::failed(format!("`{verb}` profiles a GPU, but no engine on this machine can use one"))
                .because(reason)
                .hint(
                    "name a Python with torch with --python PROGRAM, or put your own command after `--`; `llm-perf \
                     doctor` shows what is missing",
                ))
        }
        (Engine::Torch, reason) => {
            if let Some(reason) = reason {
                context.messages.note(format!("engine: torch ({reason})"));
            }
            Ok(Engine::Torch)
        }
    }
}

/// The engine, and why where it was not named.
fn resolve(
    arguments: &TargetArguments,
    given: &Overrides,
    context: &Context,
) -> Result<(Engine, Option<String>), UserError> {
    match arguments.engine {
        Some(EngineName::Native) => return Ok((Engine::Native, None)),
        Some(EngineName::Torch) => return Ok((Engine::Torch, None)),
        Some(EngineName::Auto) => {}
        None => {
            let name: String = super::composer(context)?.compose(&given.only(&["engine"]))?.get("engine")?;
            match Engine::find(&name) {
                Some(engine) => return Ok((engine, None)),
                None if name == "auto" => {}
                None => {
                    return Err(UserError::usage(format!("unknown engine `{name}`; expected auto, native or torch"))
                        .hint("set it with engine=auto or --engine auto"));
                }
            }
        }
    }
    let (engine, reason) = match only_torch(arguments) {
        Some(what) => (Engine::Torch, format!("required by {what}")),
        None if device(arguments, given).as_deref() == Some("cpu") => (Engine::Native, "the device is cpu".to_owned()),
        None => choose_engine(arguments.python.as_deref()),
    };
    Ok((engine, Some(reason)))
}

/// What only PyTorch can do, of what the flags ask for.
fn only_torch(arguments: &TargetArguments) -> Option<&'static str> {
    let is_factory =
        |model: &OsString| model.to_str().is_some_and(|model| matches!(TorchName::of(model), TorchName::Factory(_)));
    [
        ("--python", arguments.python.is_some()),
        ("--trust-remote-code", arguments.trust_remote_code),
        ("--module-ranges", arguments.module_ranges.is_some()),
        ("a model made by a Python function", arguments.model.as_ref().is_some_and(is_factory)),
    ]
    .into_iter()
    .find_map(|(what, given)| given.then_some(what))
}

/// The device, as far as the user names one.
fn device(arguments: &TargetArguments, given: &Overrides) -> Option<String> {
    let typed = || given.last("device").and_then(|one| one.value_text()).map(str::to_owned);
    arguments.device.clone().or_else(typed)
}
