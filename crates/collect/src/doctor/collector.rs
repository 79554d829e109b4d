//! Does our own collector load, and is there anything it could record?

use types::Verdict;

use super::{CheckOutcome, Probe};

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    match (&probe.collector, probe.capture.environment.tools.cupti.is_some()) {
        (Err(reason), _) => CheckOutcome::bad(
            Verdict::Missing,
            format!("the library does not load: {reason}"),
            "set TMPDIR to a folder whose programs may be run, and keep runs in one (`--out DIR`); needed for \
             `llm-perf profile -- COMMAND` to see kernels",
        ),
        (Ok(()), true) => CheckOutcome::ok("built in, loads, and finds CUPTI"),
        (Ok(()), false) => CheckOutcome::ok("built in and loads; without CUPTI it records NVTX ranges only"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn a_library_that_does_not_load_says_why() {
        let mut probe = sample::h200();
        assert_eq!(examine(&probe), CheckOutcome::ok("built in, loads, and finds CUPTI"));
        probe.collector = Err("no".into());
        let outcome = examine(&probe);
        assert_eq!((outcome.verdict, outcome.found.as_str()), (Verdict::Missing, "the library does not load: no"));
    }
}
