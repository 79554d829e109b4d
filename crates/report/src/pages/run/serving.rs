//! Requests of a load on a server: the answer in two sentences, the latencies, where they go, and how far that can be trusted.

use types::view::{PartView, RunView, ServingView};
use types::{Latency, LoadEnergy, Quantile, ServedLoad, ServedRequest, Serving};

use super::advice::{advice, problem};
use crate::render::text::code;
use crate::render::{Page, Table};
use crate::words::kind::Phrase;
use crate::words::number::{count, grouped, known, percent, rate, share, tokens_per_second};
use crate::words::serving::{objective, part, part_meaning};

/// Slow requests shown.
const SLOWEST: usize = 10;
/// Share of the mean latency below which a part is not worth a word.
const WORTH_NAMING: f64 = 0.000_5;

/// `28 requests: time to first token 38.5 ms (p50), 65.1 ms (p99); 6.60 ms per output token (p50); 785 output tokens/s.`
pub(crate) fn answer(view: &ServingView<'_>) -> String {
    let load = &view.serving.load;
    let failed = if load.failed > 0 { format!(" ({} failed)", grouped(load.failed)) } else { String::new() };
    let figures: Vec<String> = [
        load.ttft.map(|ttft| format!("time to first token {} (p50), {} (p99)", ttft.p50.ns, ttft.p99.ns)),
        load.tpot.map(|tpot| format!("{} per output token (p50)", tpot.p50.ns)),
        load.output_throughput.map(|rate| tokens_per_second(rate).replace("tokens/s", "output tokens/s")),
        load.joules_per_output_token.map(|joules| format!("{joules} per output token")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let colon = if figures.is_empty() { "" } else { ": " };
    format!("{}{failed}{colon}{}.", count(load.requests, "request"), figures.join("; "))
}

/// `Of the mean latency of 305 ms, decode takes 65.8%, others' prefill 21.2%.` Absent where no request has parts.
pub(crate) fn whereabouts(view: &ServingView<'_>) -> Option<String> {
    let mean = view.mean_ns?;
    let (joined, all) = (view.serving.join.as_ref()?.requests, view.serving.load.requests);
    let of = match (&view.serving.recorded, view.serving.load.e2el) {
        (Some(_), Some(plain)) => {
            format!(" with the server recorded ({}; {} without)", count(joined, "request"), plain.mean.ns)
        }
        _ if joined < all => format!(" ({} of {})", grouped(joined), count(all, "request")),
        _ => String::new(),
    };
    let mut parts: Vec<&PartView> =
        view.parts.iter().filter(|part| part.share.is_some_and(|share| share >= WORTH_NAMING)).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.total_ns));
    let takes = |place: usize| if place == 0 { " takes" } else { "" };
    let named =
        |(place, view): (usize, &&PartView)| format!("{}{} {}", part(view.name), takes(place), percent(view.share));
    let parts: Vec<String> = parts.iter().enumerate().map(named).collect();
    (!parts.is_empty()).then(|| format!("Of the mean latency of {mean}{of}, {}.", parts.join(", ")))
}

/// The first sentences of a page.
pub(super) fn headline(view: &ServingView<'_>) -> String {
    let whereabouts = whereabouts(view).map(|text| format!(" {text}")).unwrap_or_default();
    format!("**{}**{whereabouts}", answer(view))
}

/// What was asked of the server: `28 requests (14,830 prompt tokens, 1,154 output tokens) in 1.47 s, up to 11 at once`.
pub(super) fn extent(load: &ServedLoad) -> String {
    let tokens = [(load.input_tokens, "prompt token"), (load.output_tokens, "output token")];
    let known: Vec<_> = tokens.iter().filter(|(sum, _)| *sum > 0).map(|(sum, what)| count(*sum, what)).collect();
    let tokens = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
    let time = load.duration_ns.map(|time| format!(" in {time}")).unwrap_or_default();
    let most = load.max_concurrency.map(|most| format!(", up to {} at once", grouped(most))).unwrap_or_default();
    format!("{}{tokens}{time}{most}", count(load.requests, "request"))
}

/// The answer on a terminal; nothing without requests.
pub(super) fn terminal(page: &mut Page, run: &RunView<'_>) {
    let Some(view) = &run.serving else { return };
    page.paragraph(&answer(view));
    whereabouts(view).iter().for_each(|text| page.paragraph(text));
    let advice = advice(run);
    problem(run, &advice).iter().for_each(|text| page.paragraph(&format!("problem: {text}")));
    if let Some(first) = advice.first() {
        page.paragraph(&format!("what to do: {}", first.said()));
    }
    latencies(page, view, false);
    trust(run, view).iter().for_each(|line| page.paragraph(line));
}

/// The section of a report; nothing without requests.
pub(super) fn section(page: &mut Page, run: &RunView<'_>) {
    let Some(view) = &run.serving else { return };
    page.heading("Requests (measured)");
    page.paragraph(&format!("{}. {}", extent(&view.serving.load), trust(run, view).join(" ")));
    throughput(&view.serving.load).iter().for_each(|text| page.paragraph(text));
    latencies(page, view, true);
    page.paragraph(
        "TTFT is the time to the first token, TPOT the time per output token after the first, ITL the time between chunks of \
         output, and E2EL the end-to-end latency. Latencies count from when a request was due.",
    );
    if view.parts.is_empty() {
        return;
    }
    page.subheading("Where the latency goes");
    page.table(&part_table(view));
    page.paragraph(
        "Shares are of the latency of all matched requests; the parts of a request add up to its latency. An error in the clock offset \
         would move time between queue and return.",
    );
    page.subheading("Slowest requests");
    page.table(&slowest(view));
}

/// `Throughput: 22.7 requests/s, 16,667 tokens/s of prompts, 90.9 tokens/s of output.`
fn throughput(load: &ServedLoad) -> Option<String> {
    let rates = [
        load.request_throughput.map(|requests| format!("{} requests/s", rate(requests))),
        load.input_throughput.map(|tokens| format!("{} of prompts", tokens_per_second(tokens))),
        load.output_throughput.map(|tokens| format!("{} of output", tokens_per_second(tokens))),
    ];
    let rates: Vec<String> = rates.into_iter().flatten().collect();
    let energy = load.energy.map(|LoadEnergy { joules, gpus }| {
        format!(" Energy: {joules}, counted by {} during the load, idle power included.", count(gpus, "GPU"))
    });
    (!rates.is_empty()).then(|| format!("Throughput: {}.{}", rates.join(", "), energy.unwrap_or_default()))
}

/// Latencies, with their intervals where there is room, and how many requests met the objective.
fn latencies(page: &mut Page, view: &ServingView<'_>, intervals: bool) {
    let load = &view.serving.load;
    let intervals = intervals && load.e2el.is_some_and(|latency| latency.mean.low_ns.is_some());
    let head = if intervals { "latency (95% interval)" } else { "latency" };
    let mut table = Table::new(&format!("{head} | >mean | >p50 | >p90 | >p99"));
    for (name, latency) in [("TTFT", load.ttft), ("TPOT", load.tpot), ("ITL", load.itl), ("E2EL", load.e2el)] {
        let Some(Latency { mean, p50, p90, p99, .. }) = latency else { continue };
        table.row([name.to_owned()].into_iter().chain([mean, p50, p90, p99].map(|figure| quantile(figure, intervals))));
    }
    if !table.is_empty() {
        page.table(&table);
    }
    goodput(load).iter().for_each(|text| page.paragraph(text));
}

/// `38.5 ms (36.1 ms to 41.0 ms)`: the figure, and its interval where that is known.
fn quantile(quantile: Quantile, interval: bool) -> String {
    match quantile.low_ns.zip(quantile.high_ns).filter(|_| interval) {
        Some((low, high)) => format!("{} ({low} to {high})", quantile.ns),
        None => quantile.ns.to_string(),
    }
}

fn goodput(load: &ServedLoad) -> Option<String> {
    let goodput = load.goodput.as_ref()?;
    let (met, all) = (grouped(goodput.requests), count(load.requests, "request"));
    let per_second = goodput.per_second.map(|met| format!("{} requests/s; ", rate(met))).unwrap_or_default();
    let share = percent(Some(goodput.share));
    Some(format!("Goodput: {per_second}{met} of {all} ({share}) meet {}.", objective(&goodput.objective)))
}

/// Who measured, and how well requests are matched to the steps of the server.
fn trust(run: &RunView<'_>, view: &ServingView<'_>) -> Vec<String> {
    let source = view.serving.source.phrase();
    let Some(join) = &view.serving.join else {
        let why = match run.metrics.conditions.trace {
            Some(_) => "requests could not be matched to steps of the trace",
            None => "no trace of the server was recorded",
        };
        return vec![format!(
            "All figures of requests are the client's ({source}): {why}, so the parts of a latency are unknown."
        )];
    };
    let steps = count(join.steps, "step");
    let agreement = match join.steps_agreeing {
        Some(agreeing) => format!("; the number of sequences agrees in {} of {steps}.", grouped(agreeing)),
        None => format!(
            " ({steps} in total). The server does not annotate its steps: which requests each one processes is inferred from when their \
             output arrived, and parts may be off by some percent."
        ),
    };
    let others = match join.requests_in_trace.saturating_sub(join.requests) {
        0 => String::new(),
        others => format!(
            " The remaining {} fit no steps, as when another replica serves them, and have no parts.",
            grouped(others)
        ),
    };
    let matched = format!(
        "Latencies and throughput are the client's ({source}); their parts come from the trace. {} of {} and {} are matched to \
         steps{agreement}{others}",
        grouped(join.requests),
        count(join.requests_in_trace, "request"),
        count(join.tokens, "output chunk"),
    );
    let clock = match view.assumed_return_ns {
        Some(back) => {
            format!("The clock offset is fitted, assuming that the fastest output takes {back} to reach the client.")
        }
        None => "Client and server times are both Unix time, and nothing contradicts that they agree.".to_owned(),
    };
    slowdown(view.serving).into_iter().chain([matched, clock]).collect()
}

/// `While the server is recorded, the time between chunks of output is 4.90 ms (mean), 3.20 ms without (+53.1%).`
fn slowdown(serving: &Serving) -> Option<String> {
    let (recorded, plain) = (serving.recorded.as_ref()?.itl?.mean.ns, serving.load.itl?.mean.ns);
    let change = share((recorded - plain).get() as f64, plain.get() as f64)?;
    let change = format!("{}{}", if change < 0.0 { "-" } else { "+" }, percent(Some(change.abs())));
    Some(format!(
        "The load ran twice: latencies are without a profiler, parts with it. Recording changed the mean time between chunks of output \
         from {plain} to {recorded} ({change})."
    ))
}

fn part_table(view: &ServingView<'_>) -> Table {
    let mut table = Table::new("part | >total | >share | >p50 per request | >p99 per request | what it is");
    for view in &view.parts {
        table.row([
            part(view.name).to_owned(),
            view.total_ns.to_string(),
            percent(view.share),
            known(view.p50_ns),
            known(view.p99_ns),
            part_meaning(view.name).to_owned(),
        ]);
    }
    table
}

/// The slowest requests, with the parts that any request has.
fn slowest(view: &ServingView<'_>) -> Table {
    let parts: String = view.parts.iter().map(|view| format!(" | >{}", part(view.name))).collect();
    let mut table = Table::new(&format!("request | >latency | >TTFT | >prompt tokens | >output tokens{parts}"));
    for (place, request) in view.slowest.iter().take(SLOWEST) {
        let of = |view: &PartView| known(request.parts.as_ref().map(|parts| view.of(parts)));
        let figures = [
            name(*place, request),
            known(request.latency_ns),
            known(request.ttft_ns),
            known(request.input_tokens.map(grouped)),
            known(request.output_tokens.map(grouped)),
        ];
        table.row(figures.into_iter().chain(view.parts.iter().map(of)));
    }
    table
}

/// A request by its id, or by its place in the client's file.
fn name(place: usize, request: &ServedRequest) -> String {
    request.id.as_deref().map_or_else(|| format!("#{}", place + 1), code)
}

#[cfg(test)]
mod tests {
    use analysis::view;

    use super::super::{import_terminal, report_page, sample, sample_serving, summary_page};

    #[test]
    fn the_terminal_starts_with_latencies_and_where_they_go() {
        insta::assert_snapshot!(import_terminal(&view::run(&sample_serving::traced())));
    }

    #[test]
    fn the_report_divides_the_latency_of_requests() {
        let page = report_page(&view::run(&sample_serving::traced()), &sample::environment()).markdown();
        let section = page.split("## Requests (measured)").nth(1).unwrap().split("\n## ").next().unwrap();
        insta::assert_snapshot!(section);
    }

    #[test]
    fn the_summary_of_a_load_is_its_latencies() {
        let page = summary_page(&view::run(&sample_serving::traced()), &sample::environment()).markdown();
        insta::assert_snapshot!(page.split("\n**The problem.**").next().unwrap());
        assert!(page.split("## Appendix").next().unwrap().split_whitespace().count() <= 350, "{page}");
    }

    #[test]
    fn figures_of_a_client_alone_are_said_to_be() {
        let metrics = sample_serving::client_alone();
        let run = view::run(&metrics);
        let text = import_terminal(&run);
        assert!(text.contains("no trace of the server was recorded"), "{text}");
        assert!(!text.contains("Of the mean latency"), "{text}");
        let page = report_page(&run, &sample::environment()).markdown();
        let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## Findings", "## Requests (measured)", "## Data quality", "## Environment"]);
    }
}
