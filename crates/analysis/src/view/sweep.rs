//! The points of a sweep that one would choose.

use types::Sweep;
use types::view::SweepView;

/// The view of a sweep.
pub fn sweep(sweep: &Sweep) -> SweepView<'_> {
    let fitting = || {
        let points = sweep.points.iter().filter_map(|point| Some((point, point.figures.as_ref()?)));
        points.filter(|(_, figures)| figures.fits)
    };
    let rated = fitting().filter_map(|(point, figures)| Some((point, figures.decode_tokens_per_second?)));
    SweepView {
        sweep,
        fits: fitting().next().is_some(),
        highest_throughput: rated.max_by(|a, b| a.1.total_cmp(&b.1)),
        lowest_ttft: fitting().min_by(|a, b| a.1.ttft_ms.total_cmp(&b.1.ttft_ms)),
    }
}
