//! The device communicates, and no other kernel runs meanwhile.

use types::{Base, CollectiveSummary, EstimatedSaving, Facts, Finding, Nanos, RunKindName, Severity};

use super::{Claim, Found, Run};
use crate::device::WorkGroup;
use crate::kernel::{Family, short_name};
use crate::replay::Change;
use crate::statistics::share;

/// Share of the devices' time that must go into it.
const LEAST_SHARE: f64 = 0.05;

/// Collectives named.
const NAMED: usize = 3;
/// Share of communication from which time above the shortest calls, or below kernels that wait for it, is worth a line.
const MUCH: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "exposed-communication";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let sum = |of: fn(&types::DeviceTime) -> Nanos| -> Nanos { run.device_time.iter().map(of).sum() };
    let (exposed, all, span) =
        (sum(|time| time.communication_exposed_ns), sum(|time| time.communication_ns), sum(|time| time.span_ns));
    let (awaited, unhidden) =
        (sum(|time| time.communication_awaited_ns), sum(types::DeviceTime::communication_unhidden));
    share(unhidden.get() as f64, span.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let part = share(exposed.get() as f64, span.get() as f64)?;
    let kernels = || {
        let is_collective = |group: &&WorkGroup| group.family == Family::Communication;
        run.device.iter().flat_map(move |device| device.groups.iter().filter(is_collective))
    };
    let kernel = |group: &WorkGroup| {
        let facts =
            Facts::new().with("name", short_name(&group.name)).with_known("operator", group.operator.as_deref());
        facts.with("calls", group.calls).with("time", group.time)
    };
    let above: Nanos = run.collectives.iter().filter_map(CollectiveSummary::above_shortest).sum();
    let much = share(above.get() as f64, all.get() as f64).is_some_and(|part| part >= MUCH);
    let much_awaited = share(awaited.get() as f64, all.get() as f64).filter(|part| *part >= MUCH).map(|_| awaited);
    let facts = Facts::new()
        .with("communication", all)
        .with("exposed", exposed)
        .with_share("exposed_share", part, Base::DeviceTime)
        .with("span", span)
        .with_known("awaited", much_awaited)
        .with_known("unhidden", much_awaited.map(|_| unhidden))
        .with_known("above_shortest", much.then_some(above))
        .with_if("training", run.kind() == Some(RunKindName::Training))
        .with_if("reduces", kernels().any(|group| reduces_alone(&group.name)))
        .with_if(
            "inference",
            matches!(run.kind(), Some(RunKindName::Serving | RunKindName::Generation | RunKindName::Inference)),
        );
    let mut facts = scheme(run).into_iter().fold(facts, |facts, scheme| facts.with_if(scheme, true));
    let is_described = |row: &CollectiveSummary| row.bytes.is_some() || row.group_size.is_some();
    facts = if run.collectives.iter().any(is_described) {
        facts.with("collectives", run.collectives.iter().take(NAMED).map(collective).collect::<Vec<_>>())
    } else {
        facts.with("kernels", kernels().take(NAMED).map(kernel).collect::<Vec<_>>())
    };
    let open = |time: &types::DeviceTime| match much_awaited {
        Some(_) => time.communication_unhidden(),
        None => time.communication_exposed_ns,
    };
    // It hides behind compute that has no communication beside it yet; there may be less of that.
    let at_most = run.device_time.iter().map(|time| {
        let alone = time.compute_ns + time.communication_exposed_ns - time.communication_ns;
        open(time).min(alone.max(Nanos::ZERO))
    });
    let at_most: Nanos = at_most.sum();
    let finding = Finding::new(RULE, Severity::Warning, None, facts).saving(EstimatedSaving::at_most(at_most));
    let claim = Claim::Everywhere(run.time_of(|group| group.family == Family::Communication));
    Some(Found::new(finding, claim).replayed(Change::HiddenCommunication))
}

/// Whether a kernel reduces over all ranks and does nothing else. Those of FlashInfer, TensorRT-LLM and vLLM that add the residual
/// and normalise too say so in their names.
fn reduces_alone(name: &str) -> bool {
    let name = name.to_lowercase().replace('_', "");
    name.contains("allreduce") && !["fusion", "fused", "norm"].iter().any(|word| name.contains(word))
}

/// How a training program spreads its work, where that is what is exposed: gradients in buckets, or shards of parameters.
fn scheme(run: &Run<'_>) -> Option<&'static str> {
    let device = run.device?.data_parallel;
    let name = run.collectives.first()?.name.to_lowercase().replace('_', "");
    let is_one = |names: &[&str]| names.iter().any(|one| name.contains(one));
    match () {
        () if device.shards && is_one(&["allgather", "reducescatter"]) => Some("shards"),
        () if device.buckets && is_one(&["allreduce"]) => Some("buckets"),
        () if device.buckets || device.shards => Some("other"),
        () => None,
    }
}

/// One collective: message, group, time, and bandwidth as far as it is known.
fn collective(row: &CollectiveSummary) -> Facts {
    let facts = Facts::new().with("name", &row.name).with_known("bytes", row.bytes);
    let facts = facts.with_known("ranks", row.group_size).with("calls", row.calls).with("time", row.total_ns);
    let (Some(mean), Some(best)) = (row.bus_bytes_per_second, row.bus_bytes_per_second_best) else { return facts };
    let facts = facts.with("bus", mean).with("bus_best", best);
    let (Some(link), Some(part)) = (row.link_bytes_per_second, row.link_share) else { return facts };
    facts.with("link", link).with_share("link_share", part, Base::LinkBandwidth)
}

#[cfg(test)]
mod tests {
    use types::{Bytes, BytesPerSecond, Stage};

    use super::*;
    use crate::device::sample::group;
    use crate::device::{DeviceRecords, StageWork};
    use crate::finding::on_devices;
    use crate::scope::Scope;

    #[test]
    fn a_collective_is_described_as_far_as_it_is_known() {
        let row = CollectiveSummary {
            name: "all_to_all".to_owned(),
            dtype: Some("float".to_owned()),
            group_size: None,
            group: None,
            bytes: Some(Bytes::new(4_000_000)),
            calls: 6,
            total_ns: Nanos::new(12_000_000),
            min_ns: Nanos::new(1_000_000),
            bus_bytes_per_second: None,
            bus_bytes_per_second_best: None,
            link_bytes_per_second: None,
            link_share: None,
        };
        let unknown = collective(&row);
        assert_eq!((unknown.count("calls"), unknown.time("time")), (Some(6), Some(Nanos::new(12_000_000))));
        assert_eq!(unknown.get("bytes"), Some(&Bytes::new(4_000_000).into()));
        assert!(["ranks", "bus", "bus_best", "link", "link_share"].iter().all(|name| !unknown.has(name)));
        let rate = |gigabytes: f64| Some(BytesPerSecond::new(gigabytes * 1e9));
        let known = CollectiveSummary {
            group_size: Some(8),
            bus_bytes_per_second: rate(1.75),
            bus_bytes_per_second_best: rate(3.5),
            link_bytes_per_second: rate(350.0),
            link_share: Some(0.01),
            ..row
        };
        let known = collective(&known);
        assert_eq!((known.count("ranks"), known.share("link_share")), (Some(8), Some(0.01)));
        let rates = ["bus", "bus_best", "link"].map(|name| known.get(name).cloned());
        assert_eq!(rates, [1.75, 3.5, 350.0].map(|gigabytes| rate(gigabytes).map(Into::into)));
    }

    #[test]
    fn kernels_that_normalise_too_need_no_fusing() {
        let fused = "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(...)>(...)";
        assert!(!reduces_alone(fused) && !reduces_alone("void deep_ep::internode_ll::combine<7, 8, 7168>(...)"));
        assert!(reduces_alone("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"));
        assert!(reduces_alone(
            "void (anonymous namespace)::all_reduce_one_shot_push_kernel<__nv_bfloat16, 8u, true>(...)"
        ));
    }

    #[test]
    fn communication_alone_fires_and_hidden_communication_does_not() {
        let time = |exposed: i64| types::DeviceTime {
            communication_ns: Nanos::new(600),
            communication_exposed_ns: Nanos::new(exposed),
            ..crate::sample::device_time(1_000)
        };
        let exposed = on_devices(&[time(500)], RULE);
        assert_eq!((exposed.len(), exposed[0].saving.saves_ns), (1, Some(Nanos::new(500))));
        let facts = &exposed[0].quantities;
        assert_eq!((facts.time("communication"), facts.time("span")), (Some(Nanos::new(600)), Some(Nanos::new(1_000))));
        assert_eq!(facts.share("exposed_share"), Some(0.5));
        assert_eq!(on_devices(&[time(40)], RULE), []);
    }

    #[test]
    fn communication_of_stages_is_claimed_where_it_ran() {
        let work = |wall: i64| StageWork { wall: Nanos::new(wall), ..StageWork::default() };
        let stages = [(Scope::Stage(Stage::Prefill), work(600)), (Scope::Stage(Stage::Decode), work(390))];
        let of = |stage, run| group(stage, "ncclDevKernel_AllReduce", Family::Communication, run);
        let device = DeviceRecords {
            stages: stages.into_iter().chain([(Scope::Rest, work(10))]).collect(),
            groups: vec![of(Stage::Prefill, 300), of(Stage::Decode, 200)],
            ..DeviceRecords::default()
        };
        let exposed = Nanos::new(500);
        let time = types::DeviceTime {
            communication_ns: exposed,
            communication_exposed_ns: exposed,
            ..crate::sample::device_time(1_000)
        };
        let case = crate::sample::case();
        let metrics = crate::metrics::with_device(&case.subject(), &case.evidence(), Some(&device), vec![time]);
        let found = metrics.conclusions.findings.iter().find(|finding| finding.rule == RULE).unwrap();
        assert_eq!((found.severity, found.saving.saves_ns), (Severity::Warning, Some(exposed)));
        let lost = metrics.conclusions.lost_time.iter().filter(|row| row.rules.contains(&RULE.to_owned()));
        let claimed: Vec<_> = lost.map(|row| (row.stage, row.claimed_ns.get())).collect();
        assert_eq!(claimed, [(Some(Stage::Prefill), 300), (Some(Stage::Decode), 200)]);
    }
}
