//! How latencies of requests are distributed: small histograms side by side, with the percentiles that the report states.

use std::fmt::Write;

use types::view::RunView;
use types::{Latency, Nanos};

use super::chart::{round_values, start};
use super::lettering::WIDTH;
use super::lettering::width;
use crate::render::escape::escape;
use crate::words::number::count;

const HEIGHT: f64 = 200.0;
/// Space between two histograms.
const GAP: f64 = 30.0;
/// Where bars start and end, from the top: above are the title and the percentiles, below the axis.
const TOP: f64 = 62.0;
const BOTTOM: f64 = 178.0;
const LETTERS: f64 = 12.0;
/// Bars, at most; few values have few.
const BARS: usize = 30;

/// Values of one latency with its distribution.
struct Values {
    title: String,
    values: Vec<Nanos>,
    stated: Option<Latency>,
}

/// Histograms of TTFT, TPOT and E2EL; absent where no request got an output. Where a load ran twice, its requests are those that were
/// sent while the server was recorded, and so are the percentiles.
pub(super) fn histograms(run: &RunView<'_>) -> Option<String> {
    let view = run.serving.as_ref()?;
    let recorded = view.serving.recorded.as_ref();
    let load = recorded.unwrap_or(&view.serving.load);
    let title =
        |plain, short| if recorded.is_some() { format!("{short} while the server was recorded") } else { plain };
    let requests = || view.slowest.iter().map(|(_, request)| request);
    let shown = [
        Values {
            title: title("time to first token (TTFT)".to_owned(), "TTFT"),
            values: requests().filter_map(|request| request.ttft_ns).collect(),
            stated: load.ttft,
        },
        Values {
            title: title("time per output token (TPOT)".to_owned(), "TPOT"),
            values: view.per_token_ns.clone(),
            stated: load.tpot,
        },
        Values {
            title: title("end-to-end latency (E2EL)".to_owned(), "E2EL"),
            values: requests().filter_map(|request| request.latency_ns).collect(),
            stated: load.e2el,
        },
    ];
    let shown: Vec<&Values> = shown.iter().filter(|one| one.values.iter().any(|time| *time > Nanos::ZERO)).collect();
    if shown.is_empty() {
        return None;
    }
    let mut svg = start("latencies of requests", HEIGHT);
    let wide = (WIDTH + GAP) / shown.len() as f64 - GAP;
    for (place, values) in shown.into_iter().enumerate() {
        histogram(&mut svg, values, place as f64 * (wide + GAP), wide);
    }
    Some(svg + "</svg>\n")
}

/// One histogram, from zero to the largest value.
fn histogram(svg: &mut String, shown: &Values, left: f64, wide: f64) {
    let most = shown.values.iter().copied().max().unwrap_or_default();
    let x = |time: f64| left + wide * time / most.get() as f64;
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "<text x=\"{left:.1}\" y=\"12\" class=\"t\">{}</text>", escape(&shown.title));
    bars(svg, &shown.values, left, wide);
    let _ =
        writeln!(svg, "<line x1=\"{left:.1}\" y1=\"{BOTTOM}\" x2=\"{:.1}\" y2=\"{BOTTOM}\" class=\"g\"/>", left + wide);
    for mark in round_values(0.0, most.get() as f64, false) {
        let (text, at) = (Nanos::new(mark as i64).to_string(), x(mark));
        let anchor = if mark > 0.0 { "middle" } else { "start" };
        if at + width(&text, LETTERS) / 2.0 <= left + wide {
            let y = BOTTOM + 16.0;
            let _ =
                writeln!(svg, "<text x=\"{at:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"m\">{text}</text>");
        }
    }
    let Some(stated) = shown.stated else { return };
    // The largest is on top: a text to the left of its line crosses no other.
    for (row, (name, quantile)) in [("p99", stated.p99), ("p90", stated.p90), ("p50", stated.p50)].iter().enumerate() {
        let (at, top) = (x((quantile.ns.get() as f64).min(most.get() as f64)), 26.0 + 12.0 * row as f64);
        let text = format!("{name} {}", quantile.ns);
        let ends = if at - left > width(&text, LETTERS) + 4.0 { ("end", -4.0) } else { ("start", 4.0) };
        let _ = writeln!(
            svg,
            "<path d=\"M{at:.1} {:.1}V{BOTTOM}\" class=\"whisker\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\" class=\"m\">{text}</text>",
            top - 8.0,
            at + ends.1,
            top,
            ends.0
        );
    }
}

fn bars(svg: &mut String, values: &[Nanos], left: f64, wide: f64) {
    let most = values.iter().copied().max().unwrap_or_default().get().max(1);
    let bins = BARS.min(values.len().max(8));
    let mut counts = vec![0u64; bins];
    for value in values {
        counts[((value.get().max(0) as f64 / most as f64 * bins as f64) as usize).min(bins - 1)] += 1;
    }
    let (highest, each) = (counts.iter().copied().max().unwrap_or(1), wide / bins as f64);
    let edge = |bin: usize| Nanos::new((most as f64 * bin as f64 / bins as f64).round() as i64);
    for (bin, number) in counts.iter().copied().enumerate().filter(|(_, number)| *number > 0) {
        let tall = (BOTTOM - TOP) * number as f64 / highest as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\" class=\"c-0\"><title>{} from {} to {}</title></rect>",
            left + each * bin as f64 + 0.5,
            BOTTOM - tall,
            each - 1.0,
            count(number, "request"),
            edge(bin),
            edge(bin + 1)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::run::{sample, sample_serving};

    #[test]
    fn every_request_is_in_a_bar_and_percentiles_are_marked() {
        let metrics = sample_serving::traced();
        let svg = histograms(&analysis::view::run(&metrics)).unwrap();
        // Of three requests, two took about as long to the first token.
        assert!(svg.contains("<title>2 requests from 31.2 ms to 37.5 ms</title>"), "{svg}");
        assert_eq!(svg.matches("class=\"whisker\"").count(), 9);
        assert!(svg.contains(">p99 50.0 ms<") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn percentiles_are_those_of_the_requests_that_are_drawn() {
        let mut metrics = sample_serving::traced();
        let served = metrics.served.serving.as_mut().unwrap();
        let mut recorded = served.load.clone();
        let slower = |quantile: &mut types::Quantile| quantile.ns = quantile.ns + quantile.ns;
        recorded.ttft.iter_mut().for_each(|ttft| slower(&mut ttft.p99));
        served.recorded = Some(recorded);
        let svg = histograms(&analysis::view::run(&metrics)).unwrap();
        assert!(svg.contains(">p99 100 ms<") && !svg.contains(">p99 50.0 ms<"), "{svg}");
        assert!(svg.contains(">TTFT while the server was recorded<"), "{svg}");
    }

    #[test]
    fn a_run_without_requests_has_no_histograms() {
        assert_eq!(histograms(&analysis::view::run(&sample::metrics())), None);
    }
}
