//! Command lines that were not understood.

use std::io::{self, IsTerminal};

use types::Exit;

use super::command_line::Refusal;
use super::help;
use crate::message::{Colour, Messages, Verbosity};

/// Prints why a command line was not understood, or the help or version that it asks for; gives back the exit code.
pub(crate) fn print_refusal(refusal: &Refusal, colour: Colour) -> Exit {
    let messages = Messages::new(Verbosity::Normal, colour);
    match refusal {
        Refusal::Clap(usage) if usage.use_stderr() => {
            let wanted = messages.paint(io::stderr().is_terminal()).wanted;
            messages.talk(Verbosity::Quiet, shown(usage, wanted).trim_end());
            Exit::Usage
        }
        Refusal::Clap(usage) => match messages.print(&shown(usage, messages.paint_stdout().wanted)) {
            Ok(exit) => exit,
            Err(error) => {
                messages.error(&error);
                error.exit
            }
        },
        Refusal::Habit(error) => {
            messages.error(error);
            error.exit
        }
    }
}

fn shown(usage: &clap::Error, in_colour: bool) -> String {
    let text = usage.render();
    help::printed(&if in_colour { text.ansi().to_string() } else { text.to_string() })
}
