//! What `llm-perf profile` ends with: the numbers a person wants, and where the time went.

use types::view::RunView;
use types::{Metrics, Stage, Statistics};

use super::phrase::{device, extent, indented, mfu, model};
use super::{caveats, findings, tries};
use crate::render::Page;
use crate::render::Table;
use crate::render::text::prose;
use crate::words::number::{known, milliseconds, percent, tokens_per_second};

/// The run as at most 15 lines of plain text.
pub fn terminal(run: &RunView<'_>) -> String {
    let (metrics, rates) = (run.metrics, &run.metrics.times.throughput);
    let mut page = Page::default();
    caveats::callout(&mut page, metrics);
    let weights = metrics.run.weights.as_ref().map(|weights| format!(", weights: {weights}")).unwrap_or_default();
    page.paragraph(&prose(&format!("{}{weights}, on {}: {}", model(metrics), device(metrics), extent(metrics))));
    let rate = |rate: Option<f64>| known(rate.map(tokens_per_second));
    let (decode, end_to_end) = (rate(rates.decode_tokens_per_second), rate(rates.end_to_end_tokens_per_second));
    let batch = metrics.conditions.settings.as_ref().map(|settings| settings.batch);
    let pass = run.forward_pass_ms.map(|pass| format!("{} (median), batch {}", milliseconds(pass), known(batch)));
    let generates = |value: String| pass.is_none().then_some(value);
    page.facts([
        ("first token", generates(format!("{} (median per inference)", known(rates.ttft_ns)))),
        (
            "per token",
            generates(format!("{} (decode {decode}, end to end {end_to_end})", known(rates.time_per_output_token_ns))),
        ),
        ("forward pass", pass.clone()),
        ("MFU", Some(known(mfu(metrics)))),
        ("peak", Some(peak(metrics))),
    ]);
    stages(&mut page, run);
    findings::outlook(run, 1).iter().for_each(|line| page.paragraph(line));
    tries::terminal(&mut page, run);
    page.terminal()
}

fn peak(metrics: &Metrics) -> String {
    let Some(peak) = &metrics.utilisation.peak else { return "unknown for this device".to_owned() };
    format!("{} in {}, {} ({})", peak.flops, peak.dtype, peak.bytes_per_second, prose(&peak.source))
}

fn stages(page: &mut Page, run: &RunView<'_>) {
    let mut table = Table::new("stage | >median | >CV | >share of run | >MFU | >MBU");
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
    page.table_or(&table, "no stages were measured");
}

/// Times of stages alone, in milliseconds, as a plain table.
pub fn stage_times_terminal(stages: &[(Stage, Statistics)]) -> String {
    let mut table = Table::new("stage | >instances | >median | >min");
    for (stage, times) in stages {
        table.row([indented(*stage), times.n.to_string(), milliseconds(times.median), milliseconds(times.min)]);
    }
    let mut page = Page::default();
    page.table_or(&table, "no stages were measured");
    page.terminal()
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
