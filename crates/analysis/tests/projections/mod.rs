//! Ranges projected onto the device, as a table of nsys has them.

use std::collections::BTreeMap;

use llm_perf_analysis::attribution::Attribution;
use types::timeline::{RangeStyle, Timeline};

/// Instances, projected time, time on the host and kernels, copies and memsets by range.
pub(crate) type Projected = BTreeMap<String, (u64, i64, i64, u64)>;

/// A table of `nsys stats -r nvtx_gpu_proj_sum`.
pub(crate) fn nvidia(csv: &str) -> Projected {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |place: usize| fields[place].parse::<i64>().unwrap();
        assert_eq!(fields[1], "PushPop");
        (fields[0].to_owned(), (number(4) as u64, number(2), number(3), number(10) as u64))
    };
    csv.lines().skip(1).map(row).collect()
}

/// Ours, with names as that table spells them: the default domain is a bare colon once any range has a domain.
pub(crate) fn ours(timeline: &Timeline, attribution: &Attribution, default_domain: &str) -> Projected {
    let sums = attribution.projections.sums(timeline).into_iter().filter(|sum| sum.style == RangeStyle::PushPop);
    let named = sums.map(|sum| {
        let domain = sum.domain.map_or(default_domain.to_owned(), |domain| format!("{}:", timeline.name(domain)));
        let name = format!("{domain}{}", timeline.name(sum.name));
        (name, (sum.instances, sum.projected_ns.get(), sum.host_ns.get(), sum.work))
    });
    named.collect()
}
