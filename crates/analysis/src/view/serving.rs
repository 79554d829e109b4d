//! A load on a server: where the latency of its requests goes, and which of them are slow.

use types::view::{PartView, ServingView};
use types::{Metrics, Nanos, OffsetBasis, RequestParts, ServedRequest};

use super::{mean, time_share};
use crate::statistics::percentile;

/// The view of a load; `None` where no requests are known.
pub(super) fn serving(metrics: &Metrics) -> Option<ServingView<'_>> {
    let (serving, requests) = (metrics.served.serving.as_ref()?, &metrics.served.requests);
    let each: Vec<RequestParts> = requests.iter().filter_map(|request| request.parts).collect();
    let has_ended = |(_, request): &(usize, &ServedRequest)| request.error.is_none() && request.latency_ns.is_some();
    let mut slowest: Vec<_> = requests.iter().enumerate().filter(has_ended).collect();
    slowest.sort_by_key(|(_, request)| std::cmp::Reverse(request.latency_ns));
    let fitted = serving.join.as_ref().filter(|join| join.basis == OffsetBasis::Fitted);
    Some(ServingView {
        serving,
        mean_ns: serving.parts.and_then(|parts| mean(parts.sum(), each.len() as u64)),
        parts: serving.parts.map(|sum| parts(&sum, &each)).unwrap_or_default(),
        per_token_ns: slowest.iter().filter_map(|(_, request)| per_token(request)).collect(),
        slowest,
        assumed_return_ns: fitted.map(|join| join.offset_ns - join.offset_low_ns),
    })
}

fn parts(sum: &RequestParts, each: &[RequestParts]) -> Vec<PartView> {
    let view = |(place, (name, total_ns)): (usize, (&'static str, Nanos))| {
        let times: Vec<f64> = each.iter().map(|parts| parts.named()[place].1.get() as f64).collect();
        let at = |share: f64| percentile(&times, share).map(|time| Nanos::new(time.round() as i64));
        PartView { name, total_ns, share: time_share(total_ns, sum.sum()), p50_ns: at(0.5), p99_ns: at(0.99) }
    };
    sum.named().into_iter().enumerate().filter(|(_, (_, total))| *total != Nanos::ZERO).map(view).collect()
}

/// Time per output token after the first; `None` for a single one.
fn per_token(request: &ServedRequest) -> Option<Nanos> {
    mean(request.latency_ns? - request.ttft_ns?, request.output_tokens?.saturating_sub(1))
}
