//! Can we profile here? One file per check; each is a pure function from facts to a verdict, what was found and the exact
//! next step.
//!
//! [`Probe`] gathers the facts and judges nothing; the checks judge and ask nothing. To add a check, write its file and
//! its line in the table below.

mod calibration;
mod catalogue;
mod clock;
mod collector;
mod counters;
mod cupti;
mod driver;
mod governor;
mod gpu;
mod load;
mod nsight;
mod output;
mod probe;
mod python;
mod query;
#[cfg(test)]
mod sample;

pub use probe::{CalibrationProblem, ClockFacts, CounterFacts, OutputFacts, Probe};

use types::{Check, Diagnosis, SchemaTag, Verdict};

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CheckOutcome {
    verdict: Verdict,
    found: String,
    next_step: Option<String>,
}

impl CheckOutcome {
    fn ok(found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, found: found.into(), next_step: None }
    }

    fn skipped(found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skipped, found: found.into(), next_step: None }
    }

    fn bad(verdict: Verdict, found: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { verdict, found: found.into(), next_step: Some(next_step.into()) }
    }
}

/// One line of the table.
struct Entry {
    id: &'static str,
    title: &'static str,
    /// Whether the default command, which runs on the processor, needs it.
    required: bool,
    examine: fn(&Probe) -> CheckOutcome,
}

/// Every check, in the order they are shown: what every run needs, what a GPU run needs, what makes numbers better.
const CHECKS: [Entry; 15] = [
    Entry { id: "output", title: "output folder", required: true, examine: output::examine },
    Entry { id: "driver", title: "NVIDIA driver", required: false, examine: driver::examine },
    Entry { id: "gpu", title: "GPU", required: false, examine: gpu::examine },
    Entry { id: "catalogue", title: "GPU in the catalogue", required: false, examine: catalogue::examine },
    Entry { id: "cupti", title: "CUPTI", required: false, examine: cupti::examine },
    Entry { id: "collector", title: "CUDA collector", required: false, examine: collector::examine },
    Entry { id: "nsys", title: "Nsight Systems", required: false, examine: nsight::examine_nsys },
    Entry { id: "ncu", title: "Nsight Compute", required: false, examine: nsight::examine_ncu },
    Entry { id: "counters", title: "GPU counters", required: false, examine: counters::examine },
    Entry { id: "python", title: "Python with torch", required: false, examine: python::examine },
    Entry { id: "query", title: "SQL engine", required: false, examine: query::examine },
    Entry { id: "calibration", title: "CPU calibration", required: false, examine: calibration::examine },
    Entry { id: "governor", title: "CPU governor", required: false, examine: governor::examine },
    Entry { id: "load", title: "CPU load", required: false, examine: load::examine },
    Entry { id: "clock", title: "clock", required: false, examine: clock::examine },
];

/// Judges the facts.
pub fn diagnose(probe: &Probe) -> Diagnosis {
    let checks: Vec<Check> = CHECKS
        .iter()
        .map(|entry| {
            let CheckOutcome { verdict, found, next_step } = (entry.examine)(probe);
            let (id, title) = (entry.id.to_owned(), entry.title.to_owned());
            Check { id, title, verdict, required: entry.required, found, next_step }
        })
        .collect();
    let works = |check: &Check| matches!(check.verdict, Verdict::Ok | Verdict::Warning);
    let ready = checks.iter().filter(|check| check.required).all(works);
    let tool_version = probe.capture.environment.tool_version.clone();
    Diagnosis { schema: SchemaTag::new(), tool_version, ready, checks }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::sample;
    use super::*;

    /// One line per check, for snapshots.
    fn shown(diagnosis: &Diagnosis) -> String {
        let mut text = format!("ready: {}\n", diagnosis.ready);
        for check in &diagnosis.checks {
            let verdict = serde_json::to_value(check.verdict).unwrap();
            text += &format!("{:<12} {:<13} {}\n", check.id, verdict.as_str().unwrap(), check.found);
            if let Some(step) = &check.next_step {
                text += &format!("{:>28}{step}\n", "-> ");
            }
        }
        text
    }

    #[test]
    fn a_machine_with_nothing_but_a_processor_is_ready() {
        insta::assert_snapshot!(shown(&diagnose(&sample::processor_only())));
    }

    #[test]
    fn a_gpu_machine_where_everything_works() {
        let diagnosis = diagnose(&sample::h200());
        assert!(diagnosis.checks.iter().all(|check| check.verdict == Verdict::Ok), "{}", shown(&diagnosis));
        insta::assert_snapshot!(shown(&diagnosis));
    }

    #[test]
    fn only_what_the_default_command_needs_decides() {
        let mut probe = sample::h200();
        probe.output.writable = false;
        assert!(!diagnose(&probe).ready);
        let required: Vec<&str> = CHECKS.iter().filter(|entry| entry.required).map(|entry| entry.id).collect();
        assert_eq!(required, ["output"], "nothing of NVIDIA's is needed on a processor");
    }

    #[test]
    fn every_check_that_is_not_ok_says_what_to_do() {
        for probe in [sample::processor_only(), sample::h200(), sample::neglected()] {
            for check in diagnose(&probe).checks {
                let fine = matches!(check.verdict, Verdict::Ok | Verdict::Skipped);
                assert_eq!(check.next_step.is_none(), fine, "{check:?}");
                assert!(!check.found.is_empty(), "{check:?}");
            }
        }
    }

    #[test]
    fn a_gpu_machine_where_little_works() {
        insta::assert_snapshot!(shown(&diagnose(&sample::neglected())));
    }
}
