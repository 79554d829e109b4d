//! Requests of a load over time, for the page: bars of requests above one another, the steps of the server, and what waits.
//!
//! Columns of whole numbers as for the timeline; steps of a request that follow each other and do the same are one run. The script
//! draws them.

use serde::Serialize;
use types::view::RunView;
use types::{RequestStep, RequestWork, ServedRequest, StepLabel, StepSummary};

use super::columns::{differences, encoded};
use super::shell::Section;
use crate::words::serving::part;

/// Colours of a bar, by class, with what they show of a request that is matched to steps.
const MATCHED: [(&str, &str); 7] = [
    ("k-queue", "queue, until its first step is prepared"),
    ("k-prefill", "step with its prompt"),
    ("k-decode", "decode step"),
    ("k-mixed", "mixed step: it decodes beside others' prefill"),
    ("k-recompute", "step with tokens processed again"),
    ("k-between", "none of its steps runs"),
    ("k-return", "return to the client"),
];
/// The same of one that is not.
const UNMATCHED: [(&str, &str); 2] =
    [("k-first", "not matched to steps: until the first token"), ("k-output", "not matched to steps: output")];

#[derive(Serialize)]
struct Document<'a> {
    /// The first moment, on the clock of the trace.
    origin: i64,
    span: i64,
    /// Names of parts, in the order of their columns.
    part_names: Vec<&'static str>,
    requests: Requests<'a>,
    steps: Steps,
}

/// Requests in the order in which they were due.
#[derive(Serialize)]
struct Requests<'a> {
    /// Places in the document, from one.
    number: Vec<usize>,
    /// Empty where none has one.
    id: Vec<Option<&'a str>>,
    due: Vec<i64>,
    ttft: Vec<Option<i64>>,
    latency: Vec<Option<i64>>,
    input: Vec<Option<u64>>,
    output: Vec<Option<u64>>,
    failed: Vec<u8>,
    /// One column a part.
    parts: Vec<Vec<Option<i64>>>,
    /// How many runs of steps each has.
    runs: Vec<usize>,
    run_step: Vec<u64>,
    run_length: Vec<u64>,
    run_tokens: Vec<u64>,
    run_work: Vec<&'static str>,
}

#[derive(Default, Serialize)]
struct Steps {
    start: Vec<i64>,
    /// From the start to the first work on the device, and from there to the last.
    device_start: Vec<i64>,
    device_length: Vec<i64>,
    busy: Vec<i64>,
    label: Vec<Option<&'static str>>,
    context: Vec<u64>,
    generation: Vec<u64>,
    tokens: Vec<Option<u64>>,
    kernels: Vec<u64>,
    roofline: Vec<Option<i64>>,
}

/// Columns of the requests; absent where no request says when it was due.
pub(super) fn requests(run: &RunView<'_>) -> Option<String> {
    let offset = run.serving.as_ref()?.serving.join.as_ref().map_or(0, |join| join.offset_ns.get());
    let all = run.metrics.served.requests.iter().enumerate();
    let mut due: Vec<_> = all.filter_map(|(place, one)| Some((one.due_ns?.get() + offset, place, one))).collect();
    due.sort_by_key(|(due, place, _)| (*due, *place));
    let has_steps = due.iter().any(|(.., request)| !request.steps.is_empty());
    let steps = run.metrics.times.steps.iter().filter(|_| has_steps).flat_map(|steps| &steps.list);
    let steps: Vec<&StepSummary> = steps.collect();
    let starts = || steps.iter().filter_map(|step| step.start_ns).map(|start| start.get());
    let ends = steps.iter().filter_map(|step| step.device_end_ns).map(|end| end.get());
    let origin = due.iter().map(|(due, ..)| *due).chain(starts()).min().filter(|_| !due.is_empty())?;
    let end = due.iter().map(|(due, _, one)| due + nanos(one.latency_ns).unwrap_or_default()).chain(ends).max()?;
    encoded(&Document {
        origin,
        span: (end - origin).max(1),
        part_names: types::RequestParts::default().named().map(|(name, _)| part(name)).to_vec(),
        requests: request_columns(&due, origin),
        steps: step_columns(&steps, &joined(&run.metrics.served.requests, steps.len()), origin),
    })
}

fn nanos(time: Option<types::Nanos>) -> Option<i64> {
    time.map(types::Nanos::get)
}

fn request_columns<'a>(due: &[(i64, usize, &'a ServedRequest)], origin: i64) -> Requests<'a> {
    let requests = || due.iter().map(|(.., request)| *request);
    let runs: Vec<Vec<(RequestStep, u64)>> = requests().map(|request| runs(&request.steps)).collect();
    let flat = || runs.iter().flatten();
    let has_ids = requests().any(|request| request.id.is_some());
    let column = |place: usize| requests().map(|one| one.parts.map(|parts| parts.named()[place].1.get())).collect();
    Requests {
        number: due.iter().map(|(_, place, _)| place + 1).collect(),
        id: requests().filter(|_| has_ids).map(|request| request.id.as_deref()).collect(),
        due: differences(due.iter().map(|(due, ..)| due - origin)),
        ttft: requests().map(|request| nanos(request.ttft_ns)).collect(),
        latency: requests().map(|request| nanos(request.latency_ns)).collect(),
        input: requests().map(|request| request.input_tokens).collect(),
        output: requests().map(|request| request.output_tokens).collect(),
        failed: requests().map(|request| request.error.is_some().into()).collect(),
        parts: (0..types::RequestParts::default().named().len()).map(column).collect(),
        runs: runs.iter().map(Vec::len).collect(),
        run_step: flat().map(|(step, _)| step.step).collect(),
        run_length: flat().map(|(_, length)| *length).collect(),
        run_tokens: flat().map(|(step, _)| step.tokens).collect(),
        run_work: flat().map(|(step, _)| work(step.work)).collect(),
    }
}

/// Steps that follow each other and do the same, by the first of them and their number.
fn runs(steps: &[RequestStep]) -> Vec<(RequestStep, u64)> {
    let mut runs: Vec<(RequestStep, u64)> = Vec::new();
    for step in steps {
        match runs.last_mut() {
            Some((first, length)) if *step == (RequestStep { step: first.step + *length, ..*first }) => *length += 1,
            _ => runs.push((*step, 1)),
        }
    }
    runs
}

const fn work(work: RequestWork) -> &'static str {
    match work {
        RequestWork::Prefill => "prefill",
        RequestWork::Decode => "decode",
        RequestWork::Recompute => "recompute",
    }
}

/// Prompts and decoding sequences of every step, of the requests that are matched to it.
fn joined(requests: &[ServedRequest], steps: usize) -> Vec<[u64; 2]> {
    let mut found = vec![[0; 2]; steps];
    for step in requests.iter().flat_map(|request| &request.steps) {
        if let Some(counts) = usize::try_from(step.step).ok().and_then(|place| found.get_mut(place)) {
            counts[usize::from(step.work == RequestWork::Decode)] += 1;
        }
    }
    found
}

fn step_columns(steps: &[&StepSummary], joined: &[[u64; 2]], origin: i64) -> Steps {
    let mut columns = Steps::default();
    let mut last = origin;
    for (step, joined) in steps.iter().zip(joined) {
        let start = nanos(step.start_ns).unwrap_or(last);
        let device = nanos(step.device_start_ns).unwrap_or(start);
        columns.start.push(start - last);
        columns.device_start.push(device - start);
        columns.device_length.push(nanos(step.device_end_ns).unwrap_or(device) - device);
        columns.busy.push(step.device_ns.get());
        columns.label.push(step.label.map(StepLabel::name));
        // What nothing annotates is inferred from when output arrived.
        let [context, generation] =
            step.batch.map_or(*joined, |batch| [batch.context.sequences, batch.generation.sequences]);
        columns.context.push(context);
        columns.generation.push(generation);
        columns.tokens.push(step.batch.and_then(|batch| batch.tokens));
        columns.kernels.push(step.kernels);
        columns.roofline.push(nanos(step.work.and_then(|work| work.roofline_ns)));
        last = start;
    }
    columns
}

/// The section that the script draws them into.
pub(super) fn section(run: &RunView<'_>) -> Section {
    let requests = &run.metrics.served.requests;
    let is_matched = |request: &&ServedRequest| !request.steps.is_empty();
    let has_recompute =
        requests.iter().flat_map(|request| &request.steps).any(|step| step.work == RequestWork::Recompute);
    let shown = |class: &str| class != "k-recompute" || has_recompute;
    let matched = MATCHED.iter().filter(|(class, _)| requests.iter().any(|one| is_matched(&one)) && shown(class));
    let unmatched = UNMATCHED.iter().filter(|_| !requests.iter().all(|one| is_matched(&one)));
    let legend: String =
        matched.chain(unmatched).map(|(class, words)| format!("<li><i class=\"{class}\"></i>{words}</li>\n")).collect();
    let body = format!(
        "<div class=\"view\" data-of=\"requests\"><div class=\"tools\"><label>find request <input class=\"find\" type=\"search\"></label>\
         <button class=\"all\" type=\"button\">show all</button><output class=\"sum\" aria-live=\"polite\"></output></div>\n\
         <ul class=\"legend\">{legend}</ul>\n\
         <canvas tabindex=\"0\" role=\"img\" aria-label=\"requests by due time, with the steps of the server\"></canvas>\n\
         <p class=\"m\">Each bar is a request, from when it was due to its last output; colours show the steps that processed it. A mixed \
         step is drawn whole, although prompts take only part of it: the parts of a latency, listed for the selected request, divide it. \
         Click a request or a step for details, or select requests with the up and down keys; use the wheel or + and - to zoom, drag or \
         the left and right keys to pan, and Escape to reset. <span class=\"about\"></span></p>\n\
         <div class=\"panel\"></div><noscript>This chart needs JavaScript.</noscript></div>\n"
    );
    Section::new("requests", "Requests", body)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use base64::prelude::{BASE64_STANDARD, Engine};
    use serde_json::Value;

    use super::*;
    use crate::pages::run::{sample, sample_serving};

    fn document(metrics: &types::Metrics) -> Value {
        let text = requests(&analysis::view::run(metrics)).unwrap();
        let mut json = String::new();
        let packed = BASE64_STANDARD.decode(text).unwrap();
        flate2::read::DeflateDecoder::new(packed.as_slice()).read_to_string(&mut json).unwrap();
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn steps_that_nothing_annotates_have_the_requests_matched_to_them() {
        let mut metrics = sample_serving::traced();
        let annotated = document(&metrics);
        metrics.times.steps.as_mut().unwrap().list.iter_mut().for_each(|step| step.batch = None);
        let bare = document(&metrics);
        assert_eq!(bare["steps"]["context"], serde_json::json!([1, 1, 0, 0, 1, 0, 0]));
        assert_eq!(bare["steps"]["generation"], serde_json::json!([0, 1, 2, 2, 1, 2, 1]));
        assert_eq!(bare["steps"]["start"], annotated["steps"]["start"]);
    }

    #[test]
    fn requests_and_steps_are_on_one_clock() {
        let page = document(&sample_serving::traced());
        assert_eq!(page["origin"], 1_000_000_000, "the first request is due on the clock of the trace");
        assert_eq!(page["requests"]["due"], serde_json::json!([0, 20_000_000, 40_000_000, 10_000_000]));
        assert_eq!(page["steps"]["start"][0], 9_000_000);
        assert_eq!(page["requests"]["runs"], serde_json::json!([2, 2, 2, 0]), "a prompt, then decode");
        assert_eq!(page["requests"]["run_length"], serde_json::json!([1, 3, 1, 4, 1, 2]));
        assert_eq!(page["requests"]["failed"], serde_json::json!([0, 0, 0, 1]));
    }

    #[test]
    fn requests_of_a_client_alone_have_no_steps() {
        let metrics = sample_serving::client_alone();
        let page = document(&metrics);
        assert_eq!((&page["origin"], page["steps"]["start"].as_array().unwrap().len()), (&0.into(), 0));
        let section = section(&analysis::view::run(&metrics)).body;
        assert!(section.contains("k-first") && !section.contains("k-decode"), "{section}");
        assert_eq!(requests(&analysis::view::run(&sample::metrics())), None);
    }

    #[test]
    fn ten_thousand_requests_stay_small() {
        let mut metrics = sample_serving::traced();
        let one = metrics.served.requests[1].clone();
        let copy = |place: i64| ServedRequest {
            due_ns: Some(types::Nanos::new(place * 7_654_321)),
            latency_ns: Some(types::Nanos::new(80_000_000 + place * 977 % 40_000_000)),
            steps: (0..400).map(|step| RequestStep { step, tokens: 1, work: RequestWork::Decode }).collect(),
            ..one.clone()
        };
        metrics.served.requests = (0..10_000).map(copy).collect();
        let size = requests(&analysis::view::run(&metrics)).unwrap().len();
        assert!(size < 500_000, "{size} bytes");
    }
}
