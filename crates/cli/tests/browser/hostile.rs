//! Pages of runs that are too much, too little, or made to do harm, in a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use crate::browser::{Browser, browser};
use crate::page::{CANVAS, painted, zoom};
use crate::scratch::{Output, Scratch};
use serde_json::{Value, json};

const HARM: &str =
    "</title></template><script>window.harmed = 1</script><img src=x onerror='window.harmed = 2'>\"'`${1}&lt;";

fn done(scratch: &Scratch, arguments: &[&str]) {
    let output = Output::of(scratch.command(arguments));
    assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
}

fn event(category: &str, name: &str, start: u64, length: u64, number: u64) -> Value {
    json!({"ph": "X", "cat": category, "name": name, "pid": 9, "tid": 9, "ts": start, "dur": length,
        "args": {"correlation": number, "device": 0, "stream": 7}})
}

/// A run of these events, in the folder `run`.
fn import(scratch: &Scratch, events: &[Value]) {
    let trace = json!({"schemaVersion": 1, "traceEvents": events,
        "deviceProperties": [{"id": 0, "name": HARM, "totalGlobalMem": 1u64 << 36}]});
    std::fs::write(scratch.path("trace.json"), trace.to_string()).unwrap();
    done(scratch, &["import", "trace.json", "--out", "run"]);
}

/// Opens a page at the width of a desk and of a phone: it holds no picture from elsewhere, did nothing and fits.
fn assert_harmless(browser: &Browser, page: &Path) {
    for width in [1280, 390] {
        browser.resize(width);
        browser.open(page);
        assert_eq!(browser.value("window.harmed === undefined && document.images.length === 0"), json!(true));
        assert_eq!(browser.value("document.scripts.length"), json!(1));
        let wide = browser.value("document.documentElement.scrollWidth").as_f64().unwrap();
        assert!(wide <= f64::from(width), "{wide} of {width}");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn text(browser: &Browser, selector: &str) -> String {
    browser.value(&format!("document.querySelector('{selector}').textContent")).as_str().unwrap().to_owned()
}

pub(crate) fn two_hundred_thousand_kernels_with_endless_names_are_drawn() {
    let browser = browser();
    let scratch = Scratch::new();
    let long = format!("{HARM}{}", "x".repeat(10_000));
    let launched = |number: u64| {
        // The endless name has most of the time, so that it is at the top of every table.
        let is_long = number.is_multiple_of(1_000);
        let (name, length) = if is_long { (long.clone(), 9) } else { (format!("kernel<{}>", number % 500), 4) };
        // Not as regular as a clock, which would pack too well.
        let start = number * 10 + number * number % 3;
        [event("cuda_runtime", "cudaLaunchKernel", start, 2, number), event("kernel", &name, start + 3, length, number)]
    };
    import(&scratch, &(0..200_000).flat_map(launched).collect::<Vec<_>>());
    let page = scratch.path("run").join("report.html");
    let bytes = page.metadata().unwrap().len();
    assert!(bytes < 3_000_000, "{bytes}");
    assert_harmless(&browser, &page);
    let about = text(&browser, "#timeline .about");
    assert!(about.starts_with("400,000 events, shown as "), "{about}");
    assert!(text(&browser, "#kernels").contains("window.harmed = 1"));
    assert_served(&browser, &scratch);
}

/// The same run served: of what is zoomed in on every event is there, a hundred kernels in the first millisecond.
fn assert_served(browser: &Browser, scratch: &Scratch) {
    let mut command = scratch.command(&["show", "run", "--page"]);
    let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let address = lines.next().unwrap().unwrap();
    browser.open_address(&address);
    let press = |key: &str| {
        browser.value(&format!("{CANVAS}.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}' }}))"));
        text(browser, "#timeline .panel")
    };
    assert!(press(".").contains("events, merged"));
    zoom(browser, 0, 1_000_000);
    browser.wait(&format!("!!{CANVAS}.dataset.loaded"));
    let panel = press(".");
    assert!(panel.contains("duration") && !panel.contains("events, merged"), "{panel}");
    let [ink, columns] = painted(browser, "stream");
    let expected = (9.0 + 99.0 * 4.0) / 1_000.0 * columns;
    assert!((ink - expected).abs() < 2.0, "{ink:.2} columns of {columns}, not {expected:.2}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // Nobody without the whole address is answered, and nobody who comes under another name.
    let place = address.strip_prefix("http://").unwrap().trim_end_matches('/');
    let (host, secret) = place.split_once('/').unwrap();
    let status = |path: &str, name: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {name}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let asked = [(format!("{secret}/"), host), (String::new(), host), (format!("{secret}/"), "evil.example")];
    assert_eq!(asked.map(|(path, name)| status(&path, name)), ["200", "404", "403"]);
    server.kill().unwrap();
    server.wait().unwrap();
}

pub(crate) fn sixty_four_ranks_are_side_by_side() {
    let browser = browser();
    let scratch = Scratch::new();
    testkit::fleet::write(&scratch.path("job"), [64, 2, 2], &["straggler=5"]).unwrap();
    let mut traces: Vec<String> = std::fs::read_dir(scratch.path("job"))
        .unwrap()
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .filter(|path| path.contains(".json"))
        .collect();
    traces.sort();
    assert_eq!(traces.len(), 64);
    let traces: Vec<&str> = traces.iter().map(String::as_str).collect();
    done(&scratch, &[&["import"], &traces[..], &["--out", "run"]].concat());
    assert_harmless(&browser, &scratch.path("run").join("report.html"));
    let ranks = text(&browser, "#device-time");
    assert!(ranks.contains("rank 0") && ranks.contains("rank 63"), "{ranks}");
    done(&scratch, &["fleet", "job", "--out", "fleet"]);
    assert_harmless(&browser, &scratch.path("fleet").join("report.html"));
    let ranks = text(&browser, "#device-time");
    assert!(ranks.contains("rank 0") && ranks.contains("rank 63"), "{ranks}");
}

pub(crate) fn a_trace_without_kernels_and_one_with_half_of_its_stages_have_pages() {
    let browser = browser();
    let scratch = Scratch::new();
    import(&scratch, &[event("cpu_op", HARM, 0, 50, 1), event("cpu_op", "aten::mm", 60, 40, 2)]);
    assert_harmless(&browser, &scratch.path("run").join("report.html"));
    assert!(text(&browser, ".verdict").contains("no device work"), "{}", text(&browser, ".verdict"));
    assert!(text(&browser, ".answers").contains("Unknown"), "{}", text(&browser, ".answers"));

    let scratch = Scratch::new();
    let range = |name: &str, start, length| event("user_annotation", name, start, length, 0);
    let mut events = vec![range("prefill", 0, 100), range(HARM, 20, 30)];
    events.extend([event("cuda_runtime", "cudaLaunchKernel", 10, 2, 1), event("kernel", HARM, 20, 60, 1)]);
    import(&scratch, &events);
    assert_harmless(&browser, &scratch.path("run").join("report.html"));
    let stages = text(&browser, "#stages");
    assert!(stages.contains("prefill") && !stages.contains("decode"), "{stages}");
}
