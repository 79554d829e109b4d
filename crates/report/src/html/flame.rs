//! The flame graphs of a run: time by module path, or by region where a run has no modules, and the same inverted; and that of a
//! comparison, in the colours of change.

use std::collections::BTreeMap;

use types::view::RunView;
use types::{Change, Nanos, Stage};

use super::palette::Colour;
use super::stack::{Frame, encoded, shade};

/// Fewer frames than this are no picture.
const LEAST_FRAMES: usize = 3;
/// Changes up to which a frame counts as unchanged, and from which it has the strongest colour.
const UNCHANGED: f64 = 0.02;
const STRONG: f64 = 0.15;

/// Columns of the flame graph, and of the same inverted; absent where too few modules and regions have a time.
pub(super) fn flames(run: &RunView<'_>) -> Option<[String; 2]> {
    let breakdown = &run.metrics.breakdown;
    let mut roots: BTreeMap<String, Frame> = BTreeMap::new();
    let both = |time: Option<Nanos>| time.map(|time| [time; 2]);
    for module in breakdown.modules.iter().filter(|module| !module.path.is_empty()) {
        let stage: Stage = module.stage.top();
        roots.entry(format!("{stage}, modules")).or_default().add(module.path.split('.'), both(module.measured_ns));
    }
    if roots.is_empty() {
        for region in breakdown.regions.iter().filter(|region| !region.segments.is_empty()) {
            let device = region.device.as_ref().map_or("no device".to_owned(), ToString::to_string);
            let root = roots.entry(format!("{device}, kernels in ranges")).or_default();
            root.add(region.segments.iter().map(String::as_str), both(region.total_ns_inclusive));
        }
    }
    let roots: Vec<_> = roots.into_iter().collect();
    let inverted: Vec<_> =
        roots.iter().map(|(name, root)| (format!("{name}, by self time"), root.inverted())).collect();
    Some([encoded(&roots, shade, LEAST_FRAMES)?, encoded(&inverted, shade, LEAST_FRAMES)?])
}

/// Columns of the flame graph of a comparison: as wide as the longer side, in the colour of the change.
pub(super) fn difference(modules: &[Change]) -> Option<String> {
    let mut roots: BTreeMap<String, Frame> = BTreeMap::new();
    for change in modules.iter().filter(|change| !change.name.is_empty()) {
        let root = change.stage.map_or("modules".to_owned(), |stage| format!("{}, modules", stage.top()));
        let [base, with] = [change.base.time_ns, change.with.time_ns].map(Option::unwrap_or_default);
        roots.entry(root).or_default().add(change.name.split('.'), Some([base, with]));
    }
    encoded(&roots.into_iter().collect::<Vec<_>>(), change, LEAST_FRAMES)
}

fn change(_: &str, [base, with]: [Nanos; 2]) -> Colour<'static> {
    let share = (with - base).get() as f64 / base.get().max(1) as f64;
    Colour::Kind(match share {
        share if share.abs() < UNCHANGED => "same",
        share if share >= STRONG => "slower-2",
        share if share > 0.0 => "slower-1",
        share if share <= -STRONG => "faster-2",
        _ => "faster-1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_the_colour_of_its_sign_and_size() {
        let colour = |base: i64, with: i64| change("", [Nanos::new(base), Nanos::new(with)]).class();
        let found =
            [(100, 101), (100, 105), (100, 150), (100, 95), (100, 20), (0, 7)].map(|(base, with)| colour(base, with));
        assert_eq!(found, ["k-same", "k-slower-1", "k-slower-2", "k-faster-1", "k-faster-2", "k-slower-2"]);
    }
}
