//! Can a run be written where runs go, and is there room?

use types::{Bytes, Verdict};

use super::{CheckOutcome, Probe};

/// Room without which no run is started: a run's own files are a few megabytes, and a disk this full fails for others too.
const NEEDED: Bytes = Bytes::new(500_000_000);

/// Room for a deep run. A trace of one gigabyte is ordinary, and it is there twice while it is exported.
const COMFORTABLE: Bytes = Bytes::new(10_000_000_000);

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    let output = &probe.output;
    let (root, existing) = (output.root.display(), output.existing.display());
    if !output.is_folder {
        let found = format!("{root} cannot be created: {existing} is not a folder");
        return CheckOutcome::bad(Verdict::NotPermitted, found, "choose another folder with `--out-root DIR`");
    }
    if !output.writable {
        let found = format!("{root} is not writable: no permission in {existing}");
        return CheckOutcome::bad(Verdict::NotPermitted, found, "choose a writable folder with `--out-root DIR`");
    }
    match output.free {
        None => CheckOutcome::bad(
            Verdict::Warning,
            format!("{root} is writable; free space unknown"),
            format!("make sure {COMFORTABLE} is free for traces"),
        ),
        Some(free) if free < NEEDED => CheckOutcome::bad(
            Verdict::Missing,
            format!("{root} has {free} free; a run needs {NEEDED}"),
            "free some space, or choose a folder on another disk with `--out-root DIR`",
        ),
        Some(free) if free < COMFORTABLE => CheckOutcome::bad(
            Verdict::Warning,
            format!("{root} is writable, {free} free"),
            format!("`deep` traces take gigabytes; have {COMFORTABLE} free"),
        ),
        Some(free) => CheckOutcome::ok(format!("{root} is writable, {free} free")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn each_way_a_folder_can_fail_has_its_verdict() {
        let verdict = |change: fn(&mut Probe)| {
            let mut probe = sample::processor_only();
            change(&mut probe);
            examine(&probe).verdict
        };
        assert_eq!(verdict(|_| {}), Verdict::Ok);
        assert_eq!(verdict(|probe| probe.output.is_folder = false), Verdict::NotPermitted);
        assert_eq!(verdict(|probe| probe.output.writable = false), Verdict::NotPermitted);
        assert_eq!(verdict(|probe| probe.output.free = Some(Bytes::new(1_000))), Verdict::Missing);
        assert_eq!(verdict(|probe| probe.output.free = Some(Bytes::new(2_000_000_000))), Verdict::Warning);
        assert_eq!(verdict(|probe| probe.output.free = None), Verdict::Warning);
    }
}
