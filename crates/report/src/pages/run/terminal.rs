//! What `llm-perf profile` ends with: the numbers a person wants, and where the time went.

use types::view::RunView;
use types::{Metrics, Stage, Statistics};

use super::phrase::{device, extent, indented, mfu, model, outlook};
use super::tries;
use crate::render::table::{Table, printable};
use crate::words::number::{known, milliseconds, percent, tokens_per_second};

/// The run as at most 15 lines of plain text.
pub fn terminal(run: &RunView<'_>) -> String {
    let metrics = run.metrics;
    let weights = metrics.run.weights.as_ref().map(|weights| format!(", weights: {weights}")).unwrap_or_default();
    let rates = &metrics.times.throughput;
    let mut lines = vec![format!("{}{weights}, on {}: {}", model(metrics), device(metrics), extent(metrics))];
    match run.forward_pass_ms {
        Some(pass) => {
            let batch = metrics.conditions.settings.as_ref().map(|settings| settings.batch);
            lines.push(format!("forward pass {}, batch {}", milliseconds(pass), known(batch)));
        }
        None => lines.extend([
            format!("first token  {}", known(rates.ttft_ns)),
            format!("per token    {}", known(rates.time_per_output_token_ns)),
            format!(
                "throughput   decode {}, end to end {}",
                known(rates.decode_tokens_per_second.map(tokens_per_second)),
                known(rates.end_to_end_tokens_per_second.map(tokens_per_second))
            ),
        ]),
    }
    lines.extend([
        format!("MFU          {}", known(mfu(metrics))),
        format!("relative to  {}", peak(metrics)),
        String::new(),
    ]);
    let lines = lines.iter().map(|line| printable(line).into_owned() + "\n");
    let text = lines.collect::<String>() + &stages(run);
    text + &outlook(run).map(|line| line + "\n").unwrap_or_default() + &tries::terminal(run)
}

fn peak(metrics: &Metrics) -> String {
    let Some(peak) = &metrics.utilisation.peak else { return "no peak: this device's rates are unknown".to_owned() };
    format!("peak {} in {}, {} ({})", peak.flops, peak.dtype, peak.bytes_per_second, peak.source)
}

fn stages(run: &RunView<'_>) -> String {
    let mut table = Table::new("stage | >median | >CV | >share | >MFU | >MBU");
    for view in &run.stages {
        table.row([
            indented(view.stage.name),
            known(view.times.map(|times| milliseconds(times.median))),
            percent(view.repeat_cv),
            percent(view.run_share),
            percent(view.stage.mfu),
            percent(view.stage.mbu),
        ]);
    }
    if table.is_empty() { "no stage was measured\n".to_owned() } else { table.to_string() }
}

/// Times of stages alone, in milliseconds, as a plain table.
pub fn stage_times_terminal(stages: &[(Stage, Statistics)]) -> String {
    let mut table = Table::new("stage | >runs | >median | >min");
    for (stage, times) in stages {
        table.row([indented(*stage), times.n.to_string(), milliseconds(times.median), milliseconds(times.min)]);
    }
    if table.is_empty() { "no stage was measured\n".to_owned() } else { table.to_string() }
}

#[cfg(test)]
mod tests {
    use analysis::view::run;

    use super::*;
    use crate::pages::run::sample;

    #[test]
    fn the_answer_fits_on_fifteen_lines() {
        let text = terminal(&run(&sample::metrics()));
        insta::assert_snapshot!(text);
        assert!(text.lines().count() <= 15, "{} lines", text.lines().count());
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(112), "{widest:?} columns");
    }

    #[test]
    fn an_unknown_device_and_no_decode_show_dashes() {
        insta::assert_snapshot!(terminal(&run(&sample::without_peak())));
    }

    #[test]
    fn an_empty_run_still_prints() {
        insta::assert_snapshot!(terminal(&run(&sample::empty())));
    }
}
