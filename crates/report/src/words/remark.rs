//! What each remark says: one row an id. Remarks are clauses, because pages put them behind a colon, into a table or after "note:".

use types::{Facts, Remark};

use super::template::lines;
use super::{assumption, cause};

/// Every remark: its id, and templates of which all that can be said are joined.
pub(crate) const REMARKS: &[(&str, &[&str])] = &[
    // What kind of run a trace shows, behind "the run is ...:".
    ("run-kind.operator", &["the trace has `{name}`"]),
    ("run-kind.backward-kernel", &["kernel `{name}` belongs to a backward pass"]),
    ("run-kind.decode-marked", &["ranges mark decode"]),
    ("run-kind.capture", &["a CUDA graph is captured, but none is launched"]),
    (
        "run-kind.encoder",
        &[
            "its input is [[?patches image patches]][[!patches tokens]], and attention covers all {positions|position} at once[[?unmasked , none of them masked]]",
        ],
    ),
    (
        "run-kind.growing-keys",
        &["attention of one position covers {first:bare} to {last:bare} keys, one more with each token"],
    ),
    ("run-kind.cache-kernel", &["kernel `{name}` works on a cache of keys and values"]),
    ("run-kind.sampling-kernel", &["kernel `{name}` samples tokens"]),
    (
        "run-kind.forward",
        &[
            "no optimizer is recorded, and nothing recorded shows whether tokens are generated[[; the trace has {ranges|range}, such as {kinds:`name`}]]",
        ],
    ),
    (
        "run-kind.program",
        &[
            "no framework operator or engine annotation identifies it[[; the trace has {ranges|range}, such as {kinds:`name`}]]",
        ],
    ),
    // How stages were found, or why not.
    ("stages.marked", &["ranges in the trace"]),
    (
        "stages.engine",
        &[
            "the engine annotates each step with its batch[[; prefill: {prefills}]][[; decode: {decodes}]][[; mixed: {mixed}]][[; other: {others}]][[?speculative ; speculative decoding]][[, verifications: {verifications}]][[, draft steps: {drafts}]]",
        ],
    ),
    (
        "stages.tokens",
        &[
            "each pass looks up the token that the previous pass chose: {prefills|pass} over many positions (prefill), {decodes} over one (decode)",
        ],
    ),
    ("stages.not-inferred", &["no range names a stage, and inferring stages is disabled"]),
    ("stages.no-kernels", &["the trace has no kernels"]),
    ("stages.training", &["this is training, not inference: the trace has `{name}`"]),
    ("stages.no-sign", &["no range or annotation names a stage, and no operator with recorded shapes looks up tokens"]),
    ("stages.one-pass", &["one forward pass looks up tokens, and no pass consumes the token it chooses"]),
    (
        "stages.unconnected-passes",
        &["{passes|forward pass} look up tokens, but none looks up a token that the previous pass chose"],
    ),
    (
        "stages.mixed-batches",
        &[
            "{mixed} of {passes|forward pass} take positions of several requests in one row, as serving engines do when they batch prefill with decode",
        ],
    ),
    // Why the capture of a graph is not that of a replayed one, behind the name of its file.
    ("capture.no-launch", &["the trace launches no graph"]),
    ("capture.other-size", &["the replayed graph has {replayed|node}[[, the captured graphs have {captured:nodes}]]"]),
    (
        "capture.unchecked",
        &["both graphs have {nodes|node}, but too few operators occur twice to tell whether they are the same graph"],
    ),
    (
        "capture.other-kernels",
        &[
            "both graphs have {nodes|node}, but the same operators would launch different kernels at {differing} of {checked|place}",
        ],
    ),
    // The workload of a trace, and why it is unknown.
    ("workload.profile", &["workload profile {profile}, as given"]),
    ("workload.given", &["`workload.{key}`, as given"]),
    ("workload.driver", &["as the driver ran it"]),
    ("workload.program", &["prompt of {tokens|token}, batch {batch}, {steps|decode step}: as the program ran it"]),
    ("workload.prompt", &["prompt of {tokens|token}, batch {batch}: `{operator}` of [{batch:bare}, {tokens:bare}]"]),
    ("workload.dtype", &["weights in {dtype}: the data type of the token table"]),
    ("workload.decode-steps", &["{steps|decode step}: [[?marked marked by ranges]][[!marked inferred]]"]),
    ("workload.decode-lookups", &["{steps|decode step}: {lookups|lookup} of one token (`{operator}`)"]),
    ("workload.images", &["{images|image} of {side:bare} x {side:bare} pixels: the input of the first convolution"]),
    (
        "workload.logits",
        &["logits of [[?all all positions]][[!all the last position]]: the input of the head has {rows|row}"],
    ),
    ("workload.attention", &["attention is counted in full, whichever kernel ran"]),
    ("workload.no-tokens", &["the model takes no tokens"]),
    ("workload.split", &["weights split across {devices|device}: shapes of recorded weights"]),
    ("workload.batch-assumed", &["batch 1: assumed"]),
    ("workload.logits-assumed", &["logits of all positions in prefill: assumed"]),
    ("workload.no-timeline", &["the files have no timeline"]),
    ("workload.several-ranks", &["several ranks may share one prompt"]),
    ("workload.no-shapes", &["the trace has no operator shapes"]),
    ("workload.no-lookup", &["no operator in the trace looks up token ids"]),
    ("workload.no-prefill", &["no lookup has more than one token, so the trace has no prefill"]),
    (
        "workload.prompts-differ",
        &[
            "prompts have different sizes, such as [{batch:bare}, {tokens:bare}] and [{other_batch:bare}, {other_tokens:bare}], so the trace has more than one workload",
        ],
    ),
    (
        "workload.inputs-differ",
        &[
            "inputs have different sizes, such as {one} ({one_tokens|token}, {one_steps|decode step}) and {other} ({other_tokens|token}, {other_steps|decode step}), so there is more than one workload; select one with `--inputs`",
        ],
    ),
    (
        "workload.decode-steps-uneven",
        &["{steps|decode step} after {prompts|prompt}: prompts have different numbers of steps"],
    ),
    ("workload.not-reported", &["the program did not report its workload"]),
    (
        "workload.served",
        &[
            "?joined steps with images, or with requests of unknown length, have none",
            "!joined the lengths of the requests are unknown; pass the results of the load generator with `--requests FILE`",
        ],
    ),
    (
        "workload.no-prompt-length",
        &["the prompt length is unknown[[ ({reasons:reason})]]; pass `workload.seq_len=N` or `--workload NAME`"],
    ),
    ("workload.no-decode-steps", &["the number of decode steps is unknown; pass `workload.decode_steps=N`"]),
    ("workload.no-image-size", &["the image size is unknown; pass `workload.base_size=N`"]),
    ("workload.no-tile-grid", &["the grid of the {tiles|tile} is unknown; pass `workload.crop_grid=[ACROSS,DOWN]`"]),
    // Why a model is not the one in a trace.
    (
        "fit.world-size",
        &[
            "world size: the trace is from one rank of {world}, and no recorded weight shows how the model is split across ranks",
        ],
    ),
    ("fit.table", &["vocabulary x width: {entries:bare} x {width:bare} in the model, {shown:table} in the trace"]),
    (
        "fit.width",
        &[
            "width: the inputs of {misfitting} of {all|recorded GEMM} match no weight of the model, such as {calls|call} with a weight of {outputs:bare} x {inputs:bare}",
        ],
    ),
    (
        "fit.layers",
        &[
            "layers: the model applies {layers|weight} of {outputs:bare} x {inputs:bare} per pass, the trace {each} ({calls|call} in {passes|pass})",
        ],
    ),
    (
        "modelled.order",
        &[
            "GEMM kernels in the order of the model's operations[[?attention , attention as two GEMMs]][[, {experts|expert} one after the other]][[, without the first {leading}]][[, without {left_out} of {all}]]",
        ],
    ),
    (
        "prediction.above-measured",
        &[
            "the roofline time is {ratio:2} times the measured time, which is impossible: the run did different work than is modelled here",
        ],
    ),
    // Measurements.
    ("disturbed", &["disturbed samples: {disturbed} of {all} ({causes})"]),
    // Comparisons: what a difference means.
    ("difference.work", &["the sides did different work, so their times are not comparable"]),
    ("difference.conditions", &["this alone may explain a change"]),
    ("difference.info", &["for information; it should not affect times"]),
    ("difference.partial", &["a run is partial; its missing parts are not compared"]),
    ("difference.failed", &["a run did not finish successfully; its numbers may cover only part of the work"]),
    ("difference.no-common-input", &["the runs have no input in common, so nothing can be compared"]),
    ("difference.inputs", &["stages are compared over the {inputs|input} that all runs have"]),
    // Comparisons: why a row was not tested.
    ("untested.nothing-measured", &["nothing was measured"]),
    ("untested.only-first", &["only the first side has it"]),
    ("untested.only-second", &["only the second side has it"]),
    ("untested.some-runs", &["not every run has it"]),
    ("untested.all-failed", &["none of its runs succeeded"]),
    ("untested.other-inputs", &["the runs have different inputs"]),
    ("untested.no-common-input", &["the runs have no input in common"]),
    ("untested.one-pass", &["one pass per side, so the noise is unknown"]),
    ("untested.one-sample", &["one sample on one side, so the noise is unknown"]),
    ("untested.equal-runs", &["the runs of each side are identical"]),
    ("untested.equal-times", &["the times are zero or identical to the nanosecond"]),
    ("untested.steps-only-first", &["only the first side has such steps"]),
    ("untested.steps-only-second", &["only the second side has such steps"]),
    ("untested.other-batches", &["the steps of the two sides have different batches"]),
    ("untested.few-requests", &["too few requests on one side to estimate the noise"]),
    ("untested.one-load", &["one load per side, so the noise is unknown"]),
    ("untested.few-steps", &["too few steps on one side to estimate the noise"]),
    ("untested.few-repeats", &["too few repeats of {inputs|input}: {base} and {with}[[; each side needs {needed}]]"]),
    ("untested.busy", &["the machine was busy: {reason}"]),
    ("untested.halves-differ", &["the two halves of one run differ by {apart}; use several runs per side"]),
    (
        "untested.serial",
        &[
            "consecutive repeats are correlated ({correlation}), so a change below {limit} may be chance; use several runs per side",
        ],
    ),
    (
        "untested.overlap",
        &[
            "{overlap} of one side's repeats are like the other side's, as on a machine that changes speed; use several runs per side",
        ],
    ),
    // Comparisons: why a gate is undecided.
    ("gate.unknown-row", &["neither side measured `{name}`; measured: {known:name}"]),
    ("gate.nothing-measured", &["no stage, command or step was measured"]),
    ("gate.untested", &["{rows:name}: {reason}"]),
    ("gate.different", &["{aspect}: {meaning}"]),
    // Comparisons: notes.
    (
        "compare.one-run",
        &[
            "one run per side: intervals cover the repeats within each run, not run-to-run variation; use several runs per side to include it",
        ],
    ),
    ("compare.same-run", &["the same run is on both sides; it cannot differ from itself"]),
    ("compare.disturbed", &["{run}: {reason}"]),
    (
        "compare.no-environment",
        &["no `env.json` ([[?all all runs]][[!all {runs:run}]]), so machine, clocks and versions were not checked"],
    ),
    ("compare.no-inputs", &["no `inputs.yaml` ([[?all all runs]][[!all {runs:run}]]), so inputs were matched by name"]),
    ("compare.counter", &["{run}: {counter:title}: {value}. {remedy}"]),
    // Replays, behind "not replayed:", and notes of a what-if.
    ("replay.no-work", &["the trace has no kernels, copies or memsets"]),
    ("replay.no-calls", &["the trace has no CUDA or HIP calls of the host, only device activity"]),
    ("replay.no-launches", &["most kernels in the trace have no recorded launch call"]),
    (
        "whatif.no-roofline",
        &["no roofline times are known, because the device is unknown: name it with `--recorded-on`"],
    ),
    ("whatif.roofline", &["roofline times are those of {device} and cover {known}"]),
    (
        "whatif.no-waits",
        &["the trace has no calls that wait for the device; if the host did wait, shorter device work saves more"],
    ),
    (
        "whatif.ranks",
        &[
            "times are sums over {ranks|rank}, not the wall time of the job; ranks are replayed one at a time, and each collective takes as long as recorded, whatever its peers do",
        ],
    ),
    (
        "whatif.graphs",
        &["CUDA graphs already hold {graphs:bare} of the device work; only launches outside of them are captured"],
    ),
    ("whatif.collectives", &["each collective takes as long as recorded; its peers are not in the trace"]),
    // Regions.
    (
        "regions.no-kernel",
        &["no kernels were seen: the program launched none on a device that Nsight Compute profiles"],
    ),
    (
        "regions.none-present",
        &[
            "no region present: [[?nothing nothing was profiled]][[{kernels|kernel} ran outside any NVTX range]]; mark regions with nvtxRangePush or torch.cuda.nvtx.range",
        ],
    ),
    (
        "regions.none-matching",
        &[
            "no matching regions: [[?nothing nothing was profiled in a range]][[{kernels|kernel} ran, none in a range]] that matches {asked:`name`}; [[?selected either no such range exists, or no kernel in it passes the kernel filter]][[!selected ranges without kernels are not seen]]",
        ],
    ),
    (
        "regions.unmatched",
        &[
            "no matching regions for `{asked}`; [[found {elsewhere:`path`} instead]][[regions with kernels: {regions:`path`}]][[ and {more} more]]",
        ],
    ),
    ("regions.filtered", &["no kernel in {regions:`path`} passes the kernel filter"]),
    (
        "regions.whole-ranges",
        &[
            "{mode} replay measures whole ranges, so the kernel filter applies only to the list of kernels; use `--replay-mode kernel` for counters of selected kernels",
        ],
    ),
    ("regions.outside-unknown", &["the work outside these regions is unknown; `--survey` counts it"]),
    (
        "regions.not-replayed",
        &[
            "[[{regions:`path`}]][[!regions nothing]] could [[?regions not ]]be measured as a whole range: work must start and end inside it (synchronise before the range closes), and {mode} replay supports only some calls inside a range; try [[?range `--replay-mode app-range` or ]]`--replay-mode kernel`",
        ],
    ),
    ("regions.launches-skipped", &["{regions:`path`}: launch_skip and launch_count exclude all of its launches"]),
    ("regions.not-captured", &["{regions:`path`}: kernels were seen in the first run but not captured in the second"]),
    ("regions.no-section-values", &["sections {sections:`id`} have no values of their own in {mode} replay"]),
];

/// Says a remark, unless it is said already.
pub(crate) fn say(remark: &mut Remark) {
    if !remark.text.is_empty() {
        return;
    }
    say_all(&mut remark.facts);
    let row = REMARKS.iter().find(|(id, _)| *id == remark.id);
    let row = row.map(|(_, templates)| lines(templates, &remark.facts).join(" "));
    remark.text = row.or_else(|| assumption::said(remark)).or_else(|| cause::said(remark)).unwrap_or_default();
}

/// Says the remarks among facts.
pub(crate) fn say_all(facts: &mut Facts) {
    facts.remarks_mut().into_iter().for_each(say);
}
