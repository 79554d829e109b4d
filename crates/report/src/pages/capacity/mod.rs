//! The forecast of a load on a server, for a terminal and as a page.

mod figures;
mod layouts;
#[cfg(test)]
pub(crate) mod sample;

pub(crate) use layouts::{best, described};
pub use layouts::{layouts_page, layouts_terminal};

use types::{Capacity, CapacityAssumption, LoadMoment, Origin, SimulatedServer};

use crate::render::text::{codes, prose};
use crate::render::{Page, Table};
use crate::words::capacity::load;
use crate::words::caveat::READ_FIRST;
use crate::words::kind::Phrase;
use crate::words::number::{count, grouped, known, milliseconds, percent, rate};
use crate::words::serving::objective;
use figures::{costs, highest, interval, latencies, measured, rates, residuals, times};

/// Requests on the page; the JSON has all.
const REQUESTS: usize = 200;
/// Bars of the server over time.
const BARS: usize = 60;
/// From low to high.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The forecast as plain text.
pub fn terminal(capacity: &Capacity) -> String {
    let mut page = Page::new("");
    head(&mut page, capacity);
    page.facts([("origin", Some(origin(capacity)))]);
    page.list(assumptions(capacity));
    page.terminal()
}

/// The page.
pub fn page(capacity: &Capacity) -> Page {
    let mut page = Page::new(&format!("{} on {}", prose(&capacity.model.model_id), devices(&capacity.server)));
    head(&mut page, capacity);
    page.paragraph(&format!("Origin: {}.", origin(capacity)));
    page.heading("Requests");
    let is_measured = !capacity.measured.is_empty();
    let more = if is_measured { " | >TTFT measured | >TPOT measured | >E2EL measured" } else { "" };
    let mut table = Table::new(&format!("sent | >tokens in | >out | >TTFT | >TPOT | >E2EL{more}"));
    for request in capacity.requests.iter().take(REQUESTS) {
        let found = request.measured.filter(|_| is_measured);
        let measured = found.map(|one| {
            [known(Some(milliseconds(one.ttft_ms))), known(one.tpot_ms.map(milliseconds)), milliseconds(one.e2el_ms)]
        });
        let forecast = [
            request.sent_ms.map_or_else(|| "refused".to_owned(), milliseconds),
            grouped(request.input_tokens),
            grouped(request.output_tokens),
            known(request.ttft_ms.map(times)),
            known(request.tpot_ms.map(times)),
            known(request.e2el_ms.map(times)),
        ];
        table.row(forecast.into_iter().chain(measured.into_iter().flatten()));
    }
    page.table(&table);
    if let Some(more @ 1..) = capacity.requests.len().checked_sub(REQUESTS) {
        page.paragraph(&format!("`capacity.json` has {} more.", count(more as u64, "request")));
    }
    page.heading("Assumptions");
    page.list(assumptions(capacity));
    page
}

fn head(page: &mut Page, capacity: &Capacity) {
    page.callout(READ_FIRST, caveats(capacity));
    page.facts(about(capacity));
    page.table(&latencies(capacity));
    if !capacity.measured.is_empty() {
        page.table(&measured(capacity));
    }
    if !capacity.step_residuals.is_empty() {
        page.table(&residuals(capacity));
    }
    page.facts(rates(capacity));
    page.facts(costs(capacity));
    if let Some(table) = over_time(&capacity.over_time, capacity.server.router.is_some()) {
        page.table(&table);
    }
}

/// Model, server and load.
pub(crate) fn about(capacity: &Capacity) -> Vec<(&'static str, Option<String>)> {
    let server = &capacity.server;
    vec![
        ("answer", Some(answer(capacity))),
        ("limited by", limit(capacity).filter(|_| capacity.highest.is_none())),
        (
            "model",
            Some(format!(
                "{}, {} parameters",
                prose(&capacity.model.model_id),
                grouped(capacity.model.parameters.total)
            )),
        ),
        ("server", Some(settings(server))),
        ("memory", Some(format!("{} of weights, {} of KV cache", server.weights_bytes, server.kv_bytes))),
        ("load", Some(load(capacity))),
        ("target", capacity.load.objective.as_ref().map(objective)),
        ("highest load", highest(capacity).filter(|_| capacity.highest.is_none())),
    ]
}

/// What was asked: the highest load within the target, else what becomes of the load.
fn answer(capacity: &Capacity) -> String {
    if let (Some(_), Some(highest)) = (capacity.highest, highest(capacity)) {
        return format!("the highest load is {highest}");
    }
    let figures = &capacity.figures;
    let per_token = figures.tpot_ms.map(|tpot| format!("then {} a token, ", times(tpot.p50)));
    format!(
        "half of the requests have their first token after {}, {}{} output tokens/s",
        times(figures.ttft_ms.p50),
        per_token.unwrap_or_default(),
        interval(figures.output_throughput, rate)
    )
}

/// Requests that wait in fewer steps wait for those that are under way.
const HARDLY: f64 = 0.05;
/// From this share of its blocks on, a KV cache is called full: the next request rarely fits what is left.
const FULL: f64 = 0.95;

/// What keeps requests waiting, of the three that let none in: blocks of the KV cache, places in a step, and its tokens.
fn limit(capacity: &Capacity) -> Option<String> {
    let SimulatedServer { max_num_seqs, max_num_batched_tokens, .. } = capacity.server;
    let all = capacity.over_time.len() as f64;
    let waiting: Vec<&LoadMoment> = capacity.over_time.iter().filter(|moment| moment.waiting > 0).collect();
    let share = |is_so: &dyn Fn(&&&LoadMoment) -> bool| waiting.iter().filter(is_so).count() as f64 / all.max(1.0);
    let [waits, full, crowded] =
        [share(&|_| true), share(&|moment| moment.kv >= FULL), share(&|moment| moment.batch >= max_num_seqs)];
    let what = if waits < HARDLY {
        "nothing".to_owned()
    } else if full > waits / 2.0 {
        "the KV cache, which is full".to_owned()
    } else if crowded > waits / 2.0 {
        format!("{} that run at once", count(max_num_seqs, "request"))
    } else {
        format!("the {} of a step", count(max_num_batched_tokens, "token"))
    };
    (all > 0.0).then(|| format!("{what}: requests wait in {} of the steps", percent(Some(waits))))
}

/// What a reader must know before the first number.
pub(crate) fn caveats(capacity: &Capacity) -> Vec<String> {
    assumed(capacity).into_iter().chain(of_load(capacity)).collect()
}

/// What the forecast is assumed to be like.
pub(crate) fn assumed(capacity: &Capacity) -> Option<String> {
    (capacity.origin == Origin::Assumed)
        .then(|| format!("The forecast rests at least partly on assumptions: {}.", prose(&capacity.basis)))
}

/// What of the load and of its server is not as one may think.
pub(crate) fn of_load(capacity: &Capacity) -> impl Iterator<Item = String> {
    let refused = (capacity.load.refused > 0).then(|| {
        let of = count(capacity.load.requests, "request");
        let tokens = grouped(capacity.server.kv_blocks * capacity.server.block_size);
        format!(
            "The server refuses {} of {of}: their tokens exceed its KV cache of {tokens} tokens.",
            grouped(capacity.load.refused)
        )
    });
    let failed = (capacity.load.failed > 0).then(|| {
        let failed = count(capacity.load.failed, "request");
        format!("The load leaves out {failed} that failed when the file was recorded.")
    });
    let ignored = (!capacity.ignored_options.is_empty()).then(|| {
        format!(
            "These options of the measured server's command are not simulated: {}.",
            codes(&capacity.ignored_options)
        )
    });
    let preempted = (capacity.figures.preemptions.value >= 1.0).then(|| {
        let times = times_counted(capacity.figures.preemptions.value);
        format!("The KV cache is too small for this load: requests are preempted {times} and computed again.")
    });
    [ignored, failed, refused, preempted].into_iter().flatten()
}

fn times_counted(number: f64) -> String {
    count(number.round() as u64, "time")
}

fn devices(server: &SimulatedServer) -> String {
    match server.devices {
        1 => prose(&server.hardware),
        devices => format!("{devices} x {}", prose(&server.hardware)),
    }
}

fn settings(server: &SimulatedServer) -> String {
    let blocks = format!("{} KV blocks of {}", grouped(server.kv_blocks), count(server.block_size, "token"));
    let shared = match (&server.decoding, &server.router) {
        (Some(decoding), Some(router)) => {
            format!("; {} prefill, {} decode, {router}, each", grouped(server.servers), grouped(decoding.servers))
        }
        (None, Some(router)) => format!("; {}, {router}, each", count(server.servers, "server")),
        (_, None) => String::new(),
    };
    format!(
        "{} on {}{shared}: at most {} and {} a step, {blocks}",
        prose(&server.engine),
        devices(server),
        count(server.max_num_seqs, "sequence"),
        count(server.max_num_batched_tokens, "token"),
    )
}

/// What the figures rest on.
pub(crate) fn origin(capacity: &Capacity) -> String {
    let is_calibrated = !capacity.assumptions.contains(&CapacityAssumption::NotCalibrated);
    let covers =
        || format!(", which covers {} of the device time of typical steps", percent(Some(capacity.calibrated_share)));
    let highest = capacity.highest.is_some();
    format!(
        "{}; {}{}; values are means of {}, with 90% intervals{}",
        capacity.origin,
        prose(&capacity.basis),
        is_calibrated.then(covers).unwrap_or_default(),
        count(capacity.simulations, "simulation"),
        if highest { "; the highest load is the one under the likely times" } else { "" },
    )
}

fn assumptions(capacity: &Capacity) -> Vec<String> {
    capacity.assumptions.iter().map(|assumption| format!("{}: {}", Origin::Assumed, assumption.phrase())).collect()
}

/// A figure of a server at one moment: its name, the figure, and how it is written.
type Line = (&'static str, fn(&LoadMoment) -> f64, fn(f64) -> String);

/// Sequences, waiting requests and KV use over the load, a line of bars each.
fn over_time(moments: &[LoadMoment], are_several: bool) -> Option<Table> {
    let (first, last) = (moments.first()?, moments.last()?);
    let span = last.at_ms - first.at_ms;
    if moments.len() < 3 || span <= 0.0 {
        return None;
    }
    let mut table = Table::new(&format!("over {} | | >highest", milliseconds(span)));
    let [waiting, cache] = match are_several {
        true => ["requests waiting on a server", "KV cache of a server"],
        false => ["requests waiting", "KV cache"],
    };
    let lines: [Line; 3] = [
        ("sequences per step", |moment| moment.batch as f64, |most| grouped(most as u128)),
        (waiting, |moment| moment.waiting as f64, |most| grouped(most as u128)),
        (cache, |moment| moment.kv, |most| percent(Some(most))),
    ];
    for (name, of, shown) in lines {
        let most = moments.iter().map(of).fold(0.0, f64::max);
        let mut bars = [0.0f64; BARS];
        for moment in moments {
            let bar = &mut bars[(((moment.at_ms - first.at_ms) / span * BARS as f64) as usize).min(BARS - 1)];
            *bar = bar.max(of(moment));
        }
        let level =
            |value: f64| LEVELS[((value / most.max(1e-12) * LEVELS.len() as f64) as usize).min(LEVELS.len() - 1)];
        table.row([name.to_owned(), bars.iter().map(|value| level(*value)).collect(), shown(most)]);
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_shows_latencies_the_highest_load_and_what_tokens_cost() {
        insta::assert_snapshot!(terminal(&sample::capacity()));
    }

    #[test]
    fn the_page_lists_requests_and_assumptions() {
        insta::assert_snapshot!(page(&sample::capacity()).markdown());
    }

    #[test]
    fn what_is_assumed_or_refused_is_said_before_the_first_number() {
        let mut capacity = sample::capacity();
        assert_eq!(caveats(&capacity), Vec::<String>::new());
        capacity.origin = Origin::Assumed;
        (capacity.load.refused, capacity.load.failed) = (2, 3);
        capacity.ignored_options = vec!["--enforce-eager".to_owned()];
        capacity.figures.preemptions.value = 3.0;
        let text = terminal(&capacity);
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
        let places = [
            "rests at least partly on assumptions",
            "not simulated: `--enforce-eager`",
            "leaves out 3 requests",
            "refuses 2 of",
            "preempted",
            "\nmodel ",
        ]
        .map(at);
        assert!(places.is_sorted(), "{places:?}: {text}");
    }
}
