//! How latencies of requests are distributed: small histograms side by side, with the percentiles that the report states.

use std::fmt::Write;

use types::view::RunView;
use types::{Latency, Nanos};

use super::lettering::{self, WIDTH};
use super::plot::{Axis, Plot, Scale, drawing};
use super::rows::nanoseconds;
use crate::words::number::count;

/// Space between two histograms, and room for the values of an axis in it.
const GAP: f64 = 52.0;
/// Above are the title and the percentiles.
const TOP: f64 = 74.0;
const TALL: f64 = 116.0;
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
    let wide = WIDTH / shown.len() as f64 - GAP;
    let place = |place: usize| place as f64 * (wide + GAP) + GAP - 14.0;
    let body: String = shown.iter().enumerate().map(|(at, values)| histogram(values, place(at), wide)).collect();
    Some(drawing("latencies of requests", TOP + TALL + 40.0, &body, &[], 0.0))
}

/// One histogram, from zero to the largest value.
fn histogram(shown: &Values, left: f64, width: f64) -> String {
    let most = shown.values.iter().copied().max().unwrap_or_default().get().max(1) as f64;
    let counts = counts(&shown.values, most);
    let highest = counts.iter().copied().max().unwrap_or(1);
    let whole = |value: f64| if value.fract() == 0.0 { format!("{value:.0}") } else { String::new() };
    let mut across = Axis::new(&shown.title, Scale::between(0.0, most), nanoseconds);
    // Texts of a narrow axis cover each other.
    let step = (lettering::width("100 ms", LETTERS) * across.marks.len() as f64 / (width - 20.0)).ceil() as usize;
    across.marks = across.marks.into_iter().step_by(step.max(1)).collect();
    let up = Some(Axis::new("requests", Scale::between(0.0, highest as f64), whole));
    let plot = Plot { left, top: TOP, width, height: TALL, across, up };
    let mut svg = plot.grid() + &bars(&plot, &counts, most);
    let Some(stated) = shown.stated else { return svg };
    // The largest is on top: a text to the left of its line crosses no other.
    for (row, (name, quantile)) in [("p99", stated.p99), ("p90", stated.p90), ("p50", stated.p50)].iter().enumerate() {
        let (at, top) = (plot.x((quantile.ns.get() as f64).min(most)), 22.0 + 12.0 * row as f64);
        let text = format!("{name} {}", quantile.ns);
        let fits = at - left > lettering::width(&text, LETTERS) + 4.0;
        let (anchor, beside) = if fits { ("end", -4.0) } else { ("start", 4.0) };
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<path d=\"M{at:.1} {:.1}V{:.1}\" class=\"whisker\"/>\
             <text x=\"{:.1}\" y=\"{top:.1}\" text-anchor=\"{anchor}\" class=\"m\">{text}</text>",
            top - 8.0,
            TOP + TALL,
            at + beside
        );
    }
    svg
}

/// Requests in stretches of time as long as each other.
fn counts(values: &[Nanos], most: f64) -> Vec<u64> {
    let bins = BARS.min(values.len().max(8));
    let mut counts = vec![0u64; bins];
    for value in values {
        counts[((value.get().max(0) as f64 / most * bins as f64) as usize).min(bins - 1)] += 1;
    }
    counts
}

fn bars(plot: &Plot, counts: &[u64], most: f64) -> String {
    let mut svg = String::new();
    let edge = |bin: usize| most * bin as f64 / counts.len() as f64;
    for (bin, number) in counts.iter().copied().enumerate().filter(|(_, number)| *number > 0) {
        let (left, right, top) = (plot.x(edge(bin)), plot.x(edge(bin + 1)), plot.y(number as f64));
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"c-0\"><title>{} from {} to {}</title></rect>",
            left + 0.5,
            right - left - 1.0,
            TOP + TALL - top,
            count(number, "request"),
            nanoseconds(edge(bin).round()),
            nanoseconds(edge(bin + 1).round())
        );
    }
    svg
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
