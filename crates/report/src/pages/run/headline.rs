//! The run in a sentence or two, as its page begins.

use types::Stage;
use types::view::RunView;

use super::phrase::{imported_facts, stage};
use super::{command, imported, serving};
use crate::words::number::{count, milliseconds, percent, tokens_per_second};

/// What matters first: of a command, of a load on a server, of files that another tool wrote, or of a model that was measured here.
pub(crate) fn headline(run: &RunView<'_>) -> String {
    if let Some(command) = run.commands.first() {
        return command::headline(command) + ".";
    }
    match (&run.serving, imported_facts(run.metrics)) {
        (Some(view), _) => serving::headline(view),
        (None, Some(_)) => imported::headline(run),
        (None, None) => measured(run),
    }
}

/// First token, time per token and utilisation, in a sentence or two.
fn measured(run: &RunView<'_>) -> String {
    let (metrics, rates) = (run.metrics, &run.metrics.times.throughput);
    let mut text = match (rates.ttft_ns, run.forward_pass_ms) {
        (None, None) => return "**No prefill was measured.**".to_owned(),
        (None, Some(pass)) => format!("**{} per forward pass (median).**", milliseconds(pass)),
        (Some(first), _) => {
            let then = match (rates.time_per_output_token_ns, rates.decode_tokens_per_second) {
                (Some(step), Some(rate)) => format!("then {step} per token ({})", tokens_per_second(rate)),
                // Without the number of tokens, decode has a time and no rate.
                _ => stage(metrics, Stage::Decode)
                    .and_then(|decode| Some((decode.wall_ns?, count(decode.instances, "instance"))))
                    .map_or("no decode".to_owned(), |(wall, runs)| format!("then decode for {wall} ({runs})")),
            };
            format!("**{first} to the first token (median per inference), {then}.**")
        }
    };
    if let Some(mfu) = metrics.utilisation.mfu_model_level {
        text += &format!(" The model reached {} of peak FLOP/s (MFU)", percent(Some(mfu)));
        let mbu = metrics
            .utilisation
            .mbu_model_level
            .map(|mbu| format!(" and {} of peak bandwidth (MBU)", percent(Some(mbu))));
        text += &(mbu.unwrap_or_default() + ".");
    }
    text
}
