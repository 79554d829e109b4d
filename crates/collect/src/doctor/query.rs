//! Is there a Python that has an engine for SQL?

use types::Verdict;

use super::{CheckOutcome, Probe};

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    const PURPOSE: &str = "needed only for `llm-perf query`";
    let Some(python) = &probe.capture.environment.frameworks.python else {
        return CheckOutcome::bad(
            Verdict::Missing,
            "no working python3 on PATH",
            format!("put a python3 with duckdb on PATH, or set LLM_PERF_PYTHON to one; {PURPOSE}"),
        );
    };
    let path = python.path.as_deref().unwrap_or("python3");
    let engines = &probe.capture.query_engines;
    if !engines.iter().any(|engine| engine.starts_with("duckdb") || engine.starts_with("datafusion")) {
        return CheckOutcome::bad(
            Verdict::Missing,
            format!("{path} has neither duckdb nor datafusion"),
            format!("run `{path} -m pip install duckdb`, or set LLM_PERF_PYTHON to another Python; {PURPOSE}"),
        );
    }
    CheckOutcome::ok(format!("{} at {path}", engines.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn each_kind_of_python_has_its_verdict() {
        let mut probe = sample::h200();
        assert_eq!(examine(&probe), CheckOutcome::ok("duckdb 1.4.1 at /opt/torch/bin/python3"));
        probe.capture.query_engines = vec!["ballista 54.1.0".to_owned()];
        let outcome = examine(&probe);
        assert_eq!(outcome.found, "/opt/torch/bin/python3 has neither duckdb nor datafusion");
        assert!(outcome.next_step.unwrap().starts_with("run `/opt/torch/bin/python3 -m pip install duckdb`"));
        probe.capture.environment.frameworks.python = None;
        assert_eq!(examine(&probe).verdict, Verdict::Missing);
    }
}
