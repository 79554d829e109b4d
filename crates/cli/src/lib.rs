//! The command line of llm-perf: arguments, messages, and one file per verb.
//!
//! Responsible for turning arguments and configuration into settings, for what is printed where, and for exit codes. What
//! a verb computes lives in the crates below; nothing below this crate sees `clap` or a terminal.

use std::ffi::OsString;
use std::process::ExitCode;

use types::Exit;

use message::{Messages, Verbosity};

mod bundle;
mod choice;
mod context;
mod duration;
mod graphs;
mod load;
mod message;
mod progress;
mod resolution;
mod screen;
mod size;
mod subject;
mod target;
mod verb;

/// Runs the program on the given argument list (the program's own name first) and says how it ended.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let colour = verb::command_line::early_colour(&arguments);
    let messages = Messages::new(Verbosity::Quiet, colour);
    let wants_backtrace = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    types::report_panics(wants_backtrace, move |error| messages.error(error));
    // Whatever it left open has ended on the way.
    types::catching(|| answer(&arguments)).unwrap_or_else(|_| ExitCode::from(Exit::Failed as u8))
}

fn answer(arguments: &[OsString]) -> ExitCode {
    let command_line = match verb::command_line::parse(arguments) {
        Ok(command_line) => command_line,
        Err(refusal) => {
            let colour = verb::command_line::early_colour(arguments);
            return ExitCode::from(verb::refusal::print_refusal(&refusal, colour) as u8);
        }
    };
    let context = command_line.context();
    let exit = command_line.verb.run(&context).unwrap_or_else(|error| {
        context.messages.error(&error);
        error.exit
    });
    ExitCode::from(exit as u8)
}
