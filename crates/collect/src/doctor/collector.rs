//! Does our own collector load, and is there anything it could record?

use types::Verdict;

use super::{CheckOutcome, Probe};

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    match (&probe.collector, probe.capture.environment.tools.cupti.is_some()) {
        (Err(reason), _) => CheckOutcome::bad(
            Verdict::Missing,
            format!("cannot load the library: {reason}"),
            "set TMPDIR and `--out DIR` to folders that allow execution (not mounted noexec); needed for `llm-perf \
             profile -- COMMAND` to record kernels",
        ),
        (Ok(()), true) => CheckOutcome::ok("built in; loads and finds CUPTI"),
        (Ok(()), false) => CheckOutcome::ok("built in; loads, but records only NVTX ranges without CUPTI"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn a_library_that_does_not_load_says_why() {
        let mut probe = sample::h200();
        assert_eq!(examine(&probe), CheckOutcome::ok("built in; loads and finds CUPTI"));
        probe.collector = Err("no".into());
        let outcome = examine(&probe);
        assert_eq!((outcome.verdict, outcome.found.as_str()), (Verdict::Missing, "cannot load the library: no"));
    }
}
