//! What each caveat says: one row a kind.

use types::{Caveat, CaveatKind};

use super::remark;
use super::template::lines;

/// The heading above caveats, on every front.
pub(crate) const READ_FIRST: &str = "Read this first";

/// What a kind is, in two or three words.
pub(crate) const fn title(kind: CaveatKind) -> &'static str {
    match kind {
        CaveatKind::Partial => "Partial run.",
        CaveatKind::ModelMisfit => "The model does not fit the trace.",
        CaveatKind::NotComparable => "Not comparable.",
        CaveatKind::DataQuality => "Incomplete data.",
        CaveatKind::GraphsOnly => "CUDA graph launches only.",
        CaveatKind::UnrecordedWork => "Work that is not recorded.",
        CaveatKind::Disturbed => "Machine disturbed.",
        CaveatKind::ProfilerAttached => "Profiler attached.",
        CaveatKind::UnreliableCalibration => "Unreliable calibration.",
        CaveatKind::PartlyModelled => "Partly modelled.",
        CaveatKind::AssumedDtype => "Assumptions.",
        CaveatKind::ClassDefaults => "Class defaults.",
        CaveatKind::WidenedWeights => "Weights are widened.",
    }
}

/// Whether only launches of CUDA graphs were timed.
pub(crate) fn has_graphs_only(caveats: &[Caveat]) -> bool {
    caveats.iter().any(|caveat| caveat.kind == CaveatKind::GraphsOnly)
}

/// Why a run has no findings.
pub(crate) fn no_findings(caveats: &[Caveat]) -> &'static str {
    if has_graphs_only(caveats) {
        "no rule was applied, because only launches of CUDA graphs were timed"
    } else {
        "no rule found enough evidence in this run"
    }
}

/// What follows from a kind for whoever reads on.
pub(crate) const fn follows(kind: CaveatKind) -> &'static str {
    match kind {
        CaveatKind::Partial => "What is missing is not in any number below.",
        CaveatKind::ModelMisfit => "MFU, MBU and roofline times are left out.",
        CaveatKind::NotComparable => "Do not attribute a difference to your change.",
        CaveatKind::DataQuality => "Check the coverage before you rely on a share.",
        CaveatKind::GraphsOnly => "Do not conclude from these times that a device was idle.",
        CaveatKind::UnrecordedWork => "Do not take the idle time for a loss.",
        CaveatKind::Disturbed => "Do not compare these times with those of another run.",
        CaveatKind::ProfilerAttached => "Rely on kernel times; take wall and idle times from a plain run.",
        CaveatKind::UnreliableCalibration => "Do not quote MFU, MBU or forecasts from this run.",
        CaveatKind::PartlyModelled => "Do not compare utilisation with that of the whole model.",
        CaveatKind::AssumedDtype => "Numbers that rest on them are estimates.",
        CaveatKind::ClassDefaults => "Check them if the model differs from its published class.",
        CaveatKind::WidenedWeights => "Weights take less memory and traffic; GEMMs compute no faster.",
    }
}

/// The templates of a kind, of which all that can be said are joined.
const fn templates(kind: CaveatKind) -> &'static [&'static str] {
    match kind {
        CaveatKind::Partial => &["This run is partial: {reasons:reason;}."],
        CaveatKind::ModelMisfit => &[
            "`{model}` is not the model in this trace, so nothing here is relative to it.",
            "*misfits {misfit:capital}.",
            "Pass the model that ran with `--model`.",
        ],
        CaveatKind::NotComparable => &["Different {aspect}: {sides}. {meaning}.", "`{run}`: {disturbed}."],
        CaveatKind::DataQuality => {
            &["Some numbers cannot be trusted; see \"Data quality\".", "*counters {counter:title}: {value}."]
        }
        CaveatKind::GraphsOnly => &[
            "Only launches of CUDA graphs were timed, with an event before and after each. Kernels and work outside graphs are not recorded: device times and step times leave them out, and idle time and its causes are unknown. On an idle stream the time of a launch includes the launch call.",
        ],
        CaveatKind::UnrecordedWork => &[
            "At its start, `{device}` shows no work for {time} ({share}) although some was launched: work from before the recording may have run, which is not in any number below.",
        ],
        CaveatKind::Disturbed => &[
            "Other work disturbed {disturbed} of {measured|measured run}, so times say as much about the machine as about the program.",
            "*causes Seen: {cause:clause}.",
        ],
        CaveatKind::ProfilerAttached => &[
            "Times were recorded with a profiler attached[[: {tool}]]. Profilers slow the CPU down[[?stacks , most of all with Python stacks, as here]], so wall and idle times may be longer than without one.",
            "The profiler added {overhead} to the wall time.",
        ],
        CaveatKind::UnreliableCalibration => &[
            "The peak rates were measured while the machine was busy, so MFU and MBU may be too high ({reason}).",
            "Run `llm-perf doctor --calibrate` on an idle machine.",
        ],
        CaveatKind::PartlyModelled => &[
            "Only the language decoder of {whole} is modelled; FLOPs, bytes and memory leave its other parts out.",
            "*parts Left out: `{part}`[[, about {parameters|parameter} by its sizes]][[, {share} of the model]].",
        ],
        CaveatKind::AssumedDtype => &[
            "The model's configuration states no element type; {dtype} is assumed. Set `model.dtype` if it is another.",
        ],
        CaveatKind::ClassDefaults => {
            &["Taken from the defaults of the published class, because the file does not state them: {sizes}."]
        }
        CaveatKind::WidenedWeights => &[
            "{device} has no {stored} matrix unit: weights in {stored} are widened, and their GEMMs run in {computed}.",
        ],
    }
}

/// Says a caveat, unless it is said already.
pub(crate) fn say(caveat: &mut Caveat) {
    if caveat.text.is_empty() {
        remark::say_all(&mut caveat.quantities);
        caveat.text = lines(templates(caveat.kind), &caveat.quantities).join(" ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Facts;

    #[test]
    fn a_caveat_says_its_reasons() {
        let reasons = ["hardware counters: not permitted.", "operators: no torch"];
        let reasons: Vec<Facts> = reasons.iter().map(|reason| Facts::new().with("reason", *reason)).collect();
        let mut caveat = Caveat::new(CaveatKind::Partial, Facts::new().with("reasons", reasons));
        say(&mut caveat);
        assert_eq!(caveat.text, "This run is partial: hardware counters: not permitted; operators: no torch.");
        caveat.text = "as an older file says".to_owned();
        say(&mut caveat);
        assert_eq!(caveat.text, "as an older file says");
    }
}
