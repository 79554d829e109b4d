//! The device communicates, and no other kernel runs meanwhile.

use types::{CollectiveSummary, EstimatedSaving, Finding, Nanos, Severity};

use super::{Claim, Found, Run, percent};
use crate::device::WorkGroup;
use crate::kernel::{Family, short_name};
use crate::replay::Change;
use crate::statistics::share;

/// Share of the devices' time that must go into it.
const LEAST_SHARE: f64 = 0.05;

/// Collectives named.
const NAMED: usize = 3;
/// Share of communication from which time above the shortest calls is worth a line.
const MUCH: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "exposed-communication";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    found(run).into_iter().collect()
}

fn found(run: &Run<'_>) -> Option<Found> {
    let sum = |of: fn(&types::DeviceTime) -> Nanos| -> Nanos { run.device_time.iter().map(of).sum() };
    let (exposed, all, span) =
        (sum(|time| time.communication_exposed_ns), sum(|time| time.communication_ns), sum(|time| time.span_ns));
    let part = share(exposed.get() as f64, span.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let mut evidence = vec![format!(
        "communication runs {all}, of which {exposed} with no other kernel beside it: {} of {span}",
        percent(part)
    )];
    if run.collectives.is_empty() {
        let is_collective = |group: &&WorkGroup| group.family == Family::Communication;
        let kernels = run.device.iter().flat_map(|device| device.groups.iter().filter(is_collective));
        evidence.extend(kernels.take(NAMED).map(|group| {
            let operator = group.operator.as_deref().map(|name| format!(" of `{name}`")).unwrap_or_default();
            format!("`{}`{operator}: {} calls, {}", short_name(&group.name), group.calls, group.time)
        }));
    }
    evidence.extend(run.collectives.iter().take(NAMED).map(described));
    let above: Nanos = run.collectives.iter().map(CollectiveSummary::above_shortest).sum();
    if share(above.get() as f64, all.get() as f64).is_some_and(|part| part >= MUCH) {
        evidence.push(format!(
            "{above} of it is above what each message took in its shortest call: waiting for other ranks, or sharing links and \
             multiprocessors"
        ));
    }
    let finding = Finding {
        quantities: Default::default(),
        rule: RULE.to_owned(),
        severity: Severity::Warning,
        stage: None,
        evidence,
        saving: EstimatedSaving::at_most(exposed),
        advice: "Start collectives earlier and let compute run beside them (buckets in backward, prefetched all-gathers, two \
                 batches in flight), or send less (lower precision, fewer and larger messages). A collective also waits for \
                 the slowest rank: compare ranks before blaming the link. The estimate assumes that all of it can be hidden."
            .to_owned(),
    };
    Some(Found::new(finding, Claim::Work(Vec::new())).replayed_everywhere(Change::HiddenCommunication))
}

/// One collective: message, group, time, and bandwidth as far as it is known.
fn described(row: &CollectiveSummary) -> String {
    let size = row.bytes.map_or("of unknown size".to_owned(), |bytes| format!("of {bytes}"));
    let ranks = row.group_size.map_or("an unknown number of ranks".to_owned(), |ranks| format!("{ranks} ranks"));
    let calls = if row.calls == 1 { "1 call".to_owned() } else { format!("{} calls", row.calls) };
    let mut text = format!("`{}` {size} among {ranks}: {calls}, {}", row.name, row.total_ns);
    if let (Some(mean), Some(best)) = (row.bus_bytes_per_second, row.bus_bytes_per_second_best) {
        text += &format!("; bus bandwidth {mean}, {best} in the shortest call");
        if let (Some(link), Some(part)) = (row.link_bytes_per_second, row.link_share) {
            text += &format!(", {} of the {link} that the links of a device carry one way", percent(part));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use types::{Bytes, BytesPerSecond};

    use super::*;

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
        let unknown = "`all_to_all` of 4.00 MB among an unknown number of ranks: 6 calls, 12.0 ms";
        assert_eq!(described(&row), unknown);
        let rate = |gigabytes: f64| Some(BytesPerSecond::new(gigabytes * 1e9));
        let known = CollectiveSummary {
            group_size: Some(8),
            bus_bytes_per_second: rate(1.75),
            bus_bytes_per_second_best: rate(3.5),
            link_bytes_per_second: rate(350.0),
            link_share: Some(0.01),
            ..row
        };
        assert_eq!(
            described(&known),
            "`all_to_all` of 4.00 MB among 8 ranks: 6 calls, 12.0 ms; bus bandwidth 1.75 GB/s, 3.50 GB/s in the shortest call, 1.0% \
             of the 350 GB/s that the links of a device carry one way"
        );
    }
    use crate::finding::on_devices;

    #[test]
    fn communication_alone_fires_and_hidden_communication_does_not() {
        let time = |exposed: i64| types::DeviceTime {
            communication_ns: Nanos::new(600),
            communication_exposed_ns: Nanos::new(exposed),
            ..crate::sample::device_time(1_000)
        };
        let exposed = on_devices(&[time(500)], RULE);
        assert_eq!((exposed.len(), exposed[0].saving.saves_ns), (1, Some(Nanos::new(500))));
        assert_eq!(on_devices(&[time(40)], RULE), []);
    }
}
