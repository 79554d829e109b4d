//! What every front of a run must hold: caveats before the first number, a summary of half a page in plain words, and no number
//! that is not in a document.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod scratch;
mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};
use serde_json::Value;
use types::Nanos;

/// Words before the appendix of a summary, at most.
const HALF_A_PAGE: usize = 350;

/// Words of ours that a reader of a summary should not have to translate.
const INSIDER: [&str; 16] = [
    "nobody",
    "promised",
    "booked",
    "ledger",
    "picture(s)",
    "held against",
    "set aside",
    "in all",
    "besides",
    "taken to",
    "least possible",
    "products of",
    "what comes once",
    "is no ",
    "metrics.json",
    "instrumented",
];

/// Times that rules state of themselves: "no CUDA or HIP call for 1 ms or more".
const BOUNDS: [&str; 1] = ["1 ms"];

/// Ids of rules that are the field's own words too.
const FIELD_WORDS: [&str; 1] = ["launch-bound"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name)
}

fn cause(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/causes").join(name)
}

/// A file of a load on a serving engine.
fn serving(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/serving").join(name)
}

/// A run and everything it shows.
struct Shown {
    terminal: String,
    scratch: Scratch,
    metrics: Value,
}

impl Shown {
    fn import(file: &Path, more: &[&str]) -> Self {
        let scratch = Scratch::new();
        let mut arguments = vec!["import", file.to_str().unwrap(), "--out", "run"];
        arguments.extend(more);
        let output = Output::of(scratch.command(&arguments));
        assert_eq!(output.code, 0, "{}", output.stderr);
        let metrics = scratch.json("run", "metrics.json");
        Self { terminal: output.stdout, scratch, metrics }
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.scratch.path("run").join(name)).unwrap()
    }

    /// The half page, without the tables behind it.
    fn summary(&self) -> String {
        self.file("stakeholder_summary.md").split("\n## Appendix").next().unwrap().to_owned()
    }

    fn caveats(&self) -> Vec<String> {
        let caveats = self.metrics["caveats"].as_array().unwrap().iter();
        caveats.map(|caveat| caveat["text"].as_str().unwrap().to_owned()).collect()
    }
}

fn runs() -> Vec<(&'static str, Shown)> {
    let model = ["--model", "deepseek-ocr"];
    let requests = serving("requests.json");
    let requests = ["--requests", requests.to_str().unwrap(), "--slo", "ttft=40ms"];
    vec![
        ("torch profiler", Shown::import(&fixture("torch/dsocr-h200.json.gz"), &model)),
        ("nsys", Shown::import(&fixture("nsys/dsocr-h200.sqlite.gz"), &model)),
        ("another model", Shown::import(&fixture("torch/dsocr-h200.json.gz"), &["--model", "llama-3-8b"])),
        ("uploads", Shown::import(&cause("uploads.json.gz"), &[])),
        ("training", Shown::import(&cause("training.json.gz"), &[])),
        ("host work", Shown::import(&cause("host.wire.gz"), &[])),
        ("serving", Shown::import(&serving("trace.json.gz"), &requests)),
    ]
}

/// Every id of a rule, from the page that lists them.
fn rule_ids() -> Vec<String> {
    let page = include_str!("../../../docs/reference/metrics.md");
    let section = page.split("## Findings").nth(1).unwrap().split("\n## ").next().unwrap();
    let ids = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let ids: Vec<String> = ids.map(str::to_owned).collect();
    assert!(ids.len() > 20, "{ids:?}");
    ids
}

#[test]
fn caveats_come_before_the_first_number_on_every_front() {
    for (name, run) in runs() {
        let caveats = run.caveats();
        assert!(!caveats.is_empty(), "{name}: a profiler was attached");
        for (front, text) in [("report.md", run.file("report.md")), ("summary", run.summary())] {
            let first = text.split("\n\n").nth(1).unwrap();
            assert!(first.starts_with("> **Read this first**"), "{name}, {front}: {first}");
            assert_eq!(first.matches("\n> - ").count(), caveats.len(), "{name}, {front}: {first}");
        }
        assert!(run.terminal.starts_with("Read this first:"), "{name}: {}", run.terminal);
        let page = run.file("report.html");
        let (callout, verdict) = (page.find("class=\"callout\""), page.find("class=\"verdict\""));
        assert!(callout.is_some() && callout < verdict, "{name}: {callout:?} {verdict:?}");
        let keys: Vec<&String> = run.metrics.as_object().unwrap().keys().collect();
        let place = |key: &str| keys.iter().position(|known| *known == key);
        assert!(place("caveats") < place("totals"), "{name}: {keys:?}");
    }
}

#[test]
fn a_model_that_did_not_run_names_nothing() {
    let run = Shown::import(&fixture("torch/dsocr-h200.json.gz"), &["--model", "llama-3-8b"]);
    assert_eq!(run.metrics["run"]["model"], Value::Null);
    assert!(run.caveats()[0].contains("`llama-3-8b` is not the model in this trace"), "{:?}", run.caveats());
    let title = |text: &str| text.lines().next().unwrap().to_owned();
    for text in [title(&run.file("report.md")), title(&run.summary())] {
        assert!(!text.contains("llama"), "{text}");
    }
}

#[test]
fn a_summary_is_half_a_page_of_plain_words() {
    let rules = rule_ids();
    for (name, run) in runs() {
        let summary = run.summary();
        let words = summary.split_whitespace().count();
        assert!(words <= HALF_A_PAGE, "{name}: {words} words\n{summary}");
        for part in [
            "**What ran.**",
            "**The number that matters.**",
            "**The problem.**",
            "**What to do.**",
            "**What limits this.**",
        ] {
            assert!(summary.contains(part), "{name}: {part}\n{summary}");
        }
        // What is quoted is of the run.
        let ours: String = summary.split('`').step_by(2).collect();
        for rule in rules.iter().filter(|rule| !FIELD_WORDS.contains(&rule.as_str())) {
            assert!(
                !ours.contains(rule.as_str()),
                "{name}: {rule}
{summary}"
            );
        }
        for word in INSIDER {
            assert!(!ours.to_lowercase().contains(word), "{name}: {word}\n{summary}");
        }
        assert!(!ours.split_whitespace().any(|word| word.contains('_')), "{name}: a field's name\n{summary}");
    }
}

#[test]
fn every_time_and_share_of_a_front_is_in_a_document() {
    for (name, run) in runs() {
        let mut known = Known::default();
        known.read(None, &run.metrics);
        known.read_sums(&run.metrics);
        for (front, text) in [("terminal", run.terminal.clone()), ("summary", run.summary())] {
            for time in times(&text).into_iter().filter(|time| !BOUNDS.contains(&time.as_str())) {
                assert!(known.times.contains(&time), "{name}, {front}: `{time}` is in no document\n{text}");
            }
            for share in shares(&text) {
                assert!(known.shares.contains(&share), "{name}, {front}: `{share}` is in no document\n{text}");
            }
        }
    }
}

/// Times and shares of a document, as they are printed.
#[derive(Default)]
struct Known {
    times: BTreeSet<String>,
    shares: BTreeSet<String>,
}

impl Known {
    /// Numbers alone: a sentence of the document must not vouch for itself. `unit` is how many nanoseconds a number is, if any.
    fn read(&mut self, unit: Option<f64>, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.read(unit, item)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    let unit = match key.as_str() {
                        key if key.ends_with("_ns") || key == "ns" => Some(1.0),
                        key if key.ends_with("_ms") => Some(1e6),
                        _ => unit.filter(|unit| *unit == 1e6),
                    };
                    self.read(unit, value);
                }
                let times = fields.iter().filter(|(key, _)| key.ends_with("_ns"));
                let times: Vec<f64> = times.filter_map(|(_, value)| value.as_f64()).collect();
                for part in &times {
                    times.iter().for_each(|whole| self.share(part / whole));
                }
            }
            Value::Number(number) => {
                let value = number.as_f64().unwrap();
                unit.into_iter().for_each(|unit| self.time(value * unit));
                if number.is_f64() {
                    self.share(value);
                }
            }
            _ => {}
        }
    }

    /// Parts of the whole run, and savings of one rule in several stages.
    fn read_sums(&mut self, metrics: &Value) {
        let whole = metrics["totals"]["wall_ns"].as_f64();
        let spans: f64 = list(metrics, "device_time").iter().filter_map(|time| time["span_ns"].as_f64()).sum();
        // What lies around the work of one device.
        if let (Some(whole), [one]) = (whole, list(metrics, "device_time")) {
            one["span_ns"].as_f64().into_iter().for_each(|span| self.time(whole - span));
        }
        for time in list(metrics, "device_time").iter().chain(list(metrics, "stages")) {
            for value in time.as_object().unwrap().values().filter_map(Value::as_f64) {
                whole.into_iter().for_each(|whole| self.share(value / whole));
            }
            for cause in list(time, "idle") {
                let (part, span) = (cause["ns"].as_f64(), time["span_ns"].as_f64());
                part.zip(span).into_iter().for_each(|(part, span)| self.share(part / span));
            }
        }
        self.read_engine_steps(metrics);
        self.read_serving(metrics);
        let kernels = metrics["totals"]["kernel_ns"].as_f64().unwrap_or(spans);
        let mut families: std::collections::BTreeMap<&str, f64> = Default::default();
        for kernel in list(metrics, "kernels") {
            *families.entry(kernel["family"].as_str().unwrap_or("")).or_default() +=
                kernel["total_ns"].as_f64().unwrap_or(0.0);
        }
        families.values().for_each(|time| self.share(time / kernels));
        for kernel in list(metrics, "kernels") {
            self.share(kernel["total_ns"].as_f64().unwrap_or(0.0) / kernels);
        }
        for finding in list(metrics, "findings") {
            let stage = list(metrics, "stages").iter().find(|stage| stage["name"] == finding["stage"]);
            let wall = stage.and_then(|stage| stage["wall_ns"].as_f64());
            let saved = finding["saves_ns"].as_f64().zip(wall);
            saved.into_iter().for_each(|(saves, wall)| self.share(saves / wall));
        }
        let mut savings: std::collections::BTreeMap<&str, f64> = Default::default();
        for finding in list(metrics, "findings") {
            *savings.entry(finding["rule"].as_str().unwrap()).or_default() +=
                finding["saves_share"].as_f64().unwrap_or(0.0);
        }
        savings.values().for_each(|share| self.share(share.min(1.0)));
    }

    /// Device time of all steps of an engine that do the same, and of one on average.
    fn read_engine_steps(&mut self, metrics: &Value) {
        let mut kinds: std::collections::BTreeMap<&str, Vec<f64>> = Default::default();
        for step in list(&metrics["steps"], "list") {
            kinds.entry(step["label"].as_str().unwrap_or("")).or_default().extend(step["device_ns"].as_f64());
        }
        for times in kinds.values() {
            let sum: f64 = times.iter().sum();
            self.time(sum);
            self.time((sum / times.len() as f64).floor());
        }
    }

    /// The mean latency, the shares of its parts, and the way back that the offset of clocks assumes.
    fn read_serving(&mut self, metrics: &Value) {
        let Some(parts) = metrics["serving"]["parts"].as_object() else { return };
        let parts: Vec<f64> = parts.values().filter_map(Value::as_f64).collect();
        let (sum, join) = (parts.iter().sum::<f64>(), &metrics["serving"]["join"]);
        parts.iter().for_each(|part| self.share(part / sum));
        self.time((sum / join["requests"].as_f64().unwrap()).floor());
        self.time(join["offset_ns"].as_f64().unwrap() - join["offset_low_ns"].as_f64().unwrap());
    }

    fn time(&mut self, nanoseconds: f64) {
        self.times.insert(Nanos::new(nanoseconds.round() as i64).to_string());
    }

    fn share(&mut self, share: f64) {
        if !(0.0..=20.0).contains(&share) {
            return;
        }
        self.shares.insert(match share {
            0.0 => "0%".to_owned(),
            1.0 => "100%".to_owned(),
            share if share < 0.000_5 => "<0.1%".to_owned(),
            share if (0.999_5..1.0).contains(&share) => ">99.9%".to_owned(),
            share => format!("{:.1}%", share * 100.0),
        });
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Every time in a text, as it is written.
fn times(text: &str) -> Vec<String> {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || "(),;:*`|[]".contains(c)).filter(|word| !word.is_empty()).collect();
    let units = ["ns", "us", "ms", "s"];
    let is_time =
        |pair: &&[&str]| pair[0].parse::<f64>().is_ok() && units.contains(&pair[1].trim_end_matches(['.', ',']));
    let written = |pair: &[&str]| format!("{} {}", pair[0], pair[1].trim_end_matches(['.', ',']));
    words.windows(2).filter(is_time).map(written).collect()
}

/// Every share in a text, as it is written.
fn shares(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || "(),;:*`|[]".contains(c));
    let words = words.map(|word| word.trim_end_matches('.')).filter(|word| word.ends_with('%'));
    words
        .filter(|word| word.trim_start_matches(['<', '>']).starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}
