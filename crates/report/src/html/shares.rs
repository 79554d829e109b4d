//! Where the time goes, ranked: families of kernels with the kernels in them, the longest kernels, and stages with the modules in
//! them.

use std::collections::BTreeMap;

use types::view::RunView;
use types::{Nanos, Stage};

use super::palette::Colour;
use super::rows::{Bar, Part, Row, nanoseconds, rows, stacked};
use crate::pages::run::profiled_pass;
use crate::words::cause;
use crate::words::number::{count, percent, time_share};

/// Rows of each picture.
const ROWS: usize = 12;

/// The pictures, each with what it is of. Empty where neither kernels nor modules have a time.
pub(super) fn share_charts(run: &RunView<'_>) -> Vec<(String, String)> {
    let kernels = run.kernels.rows.iter().map(|view| view.kernel);
    let of_family = kernels.map(|kernel| (kernel.family.as_str(), kernel.short_name.clone(), kernel.total_ns));
    // A run of our own has its modules one by one.
    let modules = if run.module_kinds.is_empty() {
        run.metrics.breakdown.modules.iter().collect()
    } else {
        run.module_kinds.clone()
    };
    let of_stage = modules.into_iter().filter_map(|module| {
        let name = if module.path.is_empty() { module.class.clone() } else { all_layers(&module.path) };
        Some((module.stage.name(), name, module.exclusive_ns?))
    });
    let stage =
        |name: &str| Stage::from_range(None, name).map_or("f-other".to_owned(), |stage| Colour::Stage(stage).class());
    let families = grouped(of_family, |name| Colour::Family(name).class());
    let drawn = [
        (
            "kernels by family, the longest kernels first",
            rows("kernels by family", &families, ("kernel time", nanoseconds)),
        ),
        ("longest kernels, in the colours of their families", longest_kernels(run)),
        (
            "self time of modules by stage, the longest modules first",
            rows("self time of modules by stage", &grouped(of_stage, stage), ("self time", nanoseconds)),
        ),
    ];
    let pass = profiled_pass(run.metrics).map(|pass| format!(", {pass}")).unwrap_or_default();
    drawn.into_iter().filter_map(|(what, svg)| Some((format!("{what}{pass}"), svg?))).collect()
}

/// The kernels that take most time, of all stages and devices together.
fn longest_kernels(run: &RunView<'_>) -> Option<String> {
    let mut sums: BTreeMap<(&str, &str), (Nanos, u64)> = BTreeMap::new();
    for view in &run.kernels.rows {
        let sum = sums.entry((&view.kernel.short_name, &view.kernel.family)).or_default();
        *sum = (sum.0 + view.kernel.total_ns, sum.1 + view.kernel.calls);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (time, _))| std::cmp::Reverse(*time));
    let row = |((name, family), (time, calls)): ((&str, &str), (Nanos, u64))| Row {
        name: name.to_owned(),
        bars: vec![Bar::of_time(time, Colour::Family(family).class(), name)],
        figure: format!("{time} ({}), {}", percent(time_share(time, run.kernels.total_ns)), count(calls, "call")),
    };
    let drawn: Vec<Row> = sums.into_iter().take(ROWS).map(row).collect();
    rows("longest kernels", &drawn, ("kernel time, all calls", nanoseconds))
}

/// The path with every number as a star, so that layers are one.
fn all_layers(path: &str) -> String {
    let star = |word| if str::parse::<u32>(word).is_ok() { "*" } else { word };
    path.split('.').map(star).collect::<Vec<_>>().join(".")
}

/// A row for each group with its parts in it, at both levels the longest first.
fn grouped<'a>(found: impl Iterator<Item = (&'a str, String, Nanos)>, class: impl Fn(&str) -> String) -> Vec<Row> {
    let mut groups: BTreeMap<&str, BTreeMap<String, Nanos>> = BTreeMap::new();
    for (group, part, time) in found.filter(|(.., time)| *time > Nanos::ZERO) {
        *groups.entry(group).or_default().entry(part).or_default() += time;
    }
    let timed =
        |(group, parts): (&'a str, BTreeMap<String, Nanos>)| (group, parts.values().copied().sum::<Nanos>(), parts);
    let mut groups: Vec<_> = groups.into_iter().map(timed).collect();
    groups.sort_by_key(|(_, time, _)| std::cmp::Reverse(*time));
    let whole: Nanos = groups.iter().map(|(_, time, _)| *time).sum();
    let row = |(group, time, parts): (&str, Nanos, BTreeMap<String, Nanos>)| {
        let part = |(name, time)| Part::new(name, format!("{} tile", class(group)), time);
        let mut parts: Vec<Part> = parts.into_iter().map(part).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.time));
        Row {
            // A document's word for a family is not what people call its kernels.
            name: cause::family(group).to_owned(),
            bars: stacked(&parts, Nanos::ZERO, whole),
            figure: format!("{time} ({})", percent(time_share(time, whole))),
        }
    };
    groups.into_iter().take(ROWS).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_one() {
        assert_eq!(all_layers("model.layers.11.mlp.experts.3"), "model.layers.*.mlp.experts.*");
        assert_eq!(all_layers("head"), "head");
    }

    #[test]
    fn groups_and_their_parts_are_ranked_and_a_hostile_name_stays_text() {
        let found = [("<b>", "x", 1), ("a", "\"'><script>", 2), ("a", "y", 3)];
        let found = found.map(|(group, part, time)| (group, part.to_owned(), Nanos::new(time)));
        let drawn = grouped(found.into_iter(), |name| Colour::Family(name).class());
        let figures: Vec<_> = drawn.iter().map(|row| (row.name.as_str(), row.figure.as_str())).collect();
        assert_eq!(figures, [("a", "5.00 ns (83.3%)"), ("<b>", "1.00 ns (16.7%)")]);
        let svg = rows("t", &drawn, ("time", nanoseconds)).unwrap();
        assert!(svg.find("y 3.00 ns (50.0%)") < svg.find("&lt;script&gt; 2.00 ns"), "{svg}");
        assert!(!svg.contains("<script>") && !svg.contains("<b>") && !svg.contains("NaN"), "{svg}");
    }
}
