//! Time as areas: families of kernels and the kernels in them, or stages and the modules in them.

use std::collections::BTreeMap;
use std::fmt::Write;

use types::view::RunView;
use types::{Nanos, Stage};

use super::lettering::WIDTH;
use super::lettering::{fitted, width};
use super::palette::{Colour, ink};
use crate::pages::run::profiled_pass;
use crate::render::escape::escape;
use crate::words::number::percent;

const HEIGHT: f64 = 340.0;
/// Height of the line with a group's name.
const HEAD: f64 = 18.0;
/// Size of the letters, and the room on either side of a label.
const LETTERS: f64 = 12.0;
const MARGIN: f64 = 4.0;
/// Parts of a group drawn one by one.
const PARTS: usize = 16;
/// Groups drawn, those with most time first.
const GROUPS: usize = 12;

/// The class of a group.
type Paint = fn(&str) -> String;

/// A group and its parts, each with its time.
struct Group {
    name: String,
    time: f64,
    parts: Vec<(String, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Rect {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Kernels by family where there are any, and modules by stage. Empty where neither has a time.
pub(super) fn treemaps(run: &RunView<'_>) -> Vec<(String, String)> {
    let kernels = run.kernels.rows.iter().map(|view| view.kernel);
    let kernels = kernels.map(|kernel| (kernel.family.clone(), kernel.short_name.clone(), kernel.total_ns));
    // A run of our own has its modules one by one.
    let modules = if run.module_kinds.is_empty() {
        run.metrics.breakdown.modules.iter().collect()
    } else {
        run.module_kinds.clone()
    };
    let modules = modules.into_iter().filter_map(|module| {
        let name = if module.path.is_empty() { module.class.clone() } else { all_layers(&module.path) };
        Some((module.stage.to_string(), name, module.exclusive_ns?))
    });
    let family: Paint = |name| Colour::Family(name).class();
    let stage: Paint =
        |name| Stage::from_range(None, name).map_or("f-other".to_owned(), |stage| Colour::Stage(stage).class());
    let drawn =
        [("kernels by family", groups(kernels), family), ("self time of modules by stage", groups(modules), stage)];
    let drawn =
        drawn.into_iter().filter(|(_, groups, _)| groups.iter().map(|group| group.parts.len()).sum::<usize>() > 1);
    let pass = profiled_pass(run.metrics).map(|pass| format!(", {pass}")).unwrap_or_default();
    drawn.map(|(what, groups, paint)| (what.to_owned(), draw(&format!("{what}{pass}"), &groups, paint))).collect()
}

/// The path with every number as a star, so that layers are one.
fn all_layers(path: &str) -> String {
    let star = |word| if str::parse::<u32>(word).is_ok() { "*" } else { word };
    path.split('.').map(star).collect::<Vec<_>>().join(".")
}

/// The longest first, at both levels; what is too small to be drawn is put together.
fn groups(rows: impl Iterator<Item = (String, String, Nanos)>) -> Vec<Group> {
    let mut sums: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for (group, part, time) in rows.filter(|(.., time)| *time > Nanos::ZERO) {
        *sums.entry(group).or_default().entry(part).or_default() += time.get() as f64;
    }
    let group = |(name, parts): (String, BTreeMap<String, f64>)| {
        let time = parts.values().sum();
        Group { name, time, parts: largest(parts.into_iter().collect(), PARTS) }
    };
    let mut groups: Vec<Group> = sums.into_iter().map(group).collect();
    groups.sort_by(|a, b| b.time.total_cmp(&a.time));
    if groups.len() > GROUPS {
        let rest = groups.split_off(GROUPS - 1);
        let parts = rest.iter().map(|group| (group.name.clone(), group.time)).collect();
        let time = rest.iter().map(|group| group.time).sum();
        groups.push(Group { name: format!("{} more", rest.len()), time, parts: largest(parts, PARTS) });
    }
    groups
}

fn largest(mut parts: Vec<(String, f64)>, most: usize) -> Vec<(String, f64)> {
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    if parts.len() > most {
        let rest = parts.split_off(most - 1);
        parts.push((format!("{} more", rest.len()), rest.iter().map(|part| part.1).sum()));
    }
    parts
}

/// Areas in proportion to the values, which are the largest first, as near to squares as rows of them allow (Bruls, Huizing and
/// van Wijk, Squarified Treemaps, 2000).
fn squarified(values: &[f64], whole: Rect) -> Vec<Rect> {
    let sum: f64 = values.iter().sum();
    let scale = whole.width * whole.height / sum.max(f64::MIN_POSITIVE);
    let (mut placed, mut free, mut left) = (Vec::with_capacity(values.len()), whole, values);
    while !left.is_empty() {
        let side = free.width.min(free.height);
        // The worst ratio of sides among the first `count` in one row.
        let worst = |count: usize| {
            let row: f64 = left[..count].iter().sum::<f64>() * scale;
            let ratio = |value: f64| (side * side * value / (row * row)).max(row * row / (side * side * value));
            ratio(left[0] * scale).max(ratio(left[count - 1] * scale))
        };
        let mut count = 1;
        while count < left.len() && worst(count + 1) <= worst(count) {
            count += 1;
        }
        let row: f64 = left[..count].iter().sum::<f64>() * scale;
        let thick = if side > 0.0 { row / side } else { 0.0 };
        let mut at = 0.0;
        for value in &left[..count] {
            let long = if thick > 0.0 { value * scale / thick } else { 0.0 };
            placed.push(if free.width >= free.height {
                Rect { x: free.x, y: free.y + at, width: thick, height: long }
            } else {
                Rect { x: free.x + at, y: free.y, width: long, height: thick }
            });
            at += long;
        }
        if free.width >= free.height {
            free = Rect { x: free.x + thick, width: (free.width - thick).max(0.0), ..free }
        } else {
            free = Rect { y: free.y + thick, height: (free.height - thick).max(0.0), ..free }
        }
        left = &left[count..];
    }
    placed
}

fn draw(title: &str, groups: &[Group], paint: Paint) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n",
        escape(title)
    );
    let whole: f64 = groups.iter().map(|group| group.time).sum();
    let words = |name: &str, time: f64| {
        format!("{name}: {}, {}", Nanos::new(time as i64), percent(Some(time / whole.max(f64::MIN_POSITIVE))))
    };
    let places = squarified(
        &groups.iter().map(|group| group.time).collect::<Vec<_>>(),
        Rect { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT },
    );
    for (group, place) in groups.iter().zip(places) {
        let class = paint(&group.name);
        let ink = ink(&class);
        // A group too low for its name is drawn without parts.
        let has_head = place.height > 2.0 * HEAD;
        let _ = write!(svg, "{}", rect(place, &class, &words(&group.name, group.time)));
        if !has_head {
            svg += &label(place, &[words(&group.name, group.time), group.name.clone()], ink);
            continue;
        }
        svg += &label(Rect { height: HEAD, ..place }, &[words(&group.name, group.time), group.name.clone()], ink);
        let inner = Rect {
            x: place.x + 2.0,
            y: place.y + HEAD,
            width: (place.width - 4.0).max(0.0),
            height: place.height - HEAD - 2.0,
        };
        let times: Vec<f64> = group.parts.iter().map(|part| part.1).collect();
        for ((name, time), place) in group.parts.iter().zip(squarified(&times, inner)) {
            svg += &rect(place, &format!("{class} tile"), &words(name, *time));
            svg += &label(place, &[words(name, *time), name.clone()], ink);
        }
    }
    svg + "</svg>\n"
}

fn rect(place: Rect, class: &str, hint: &str) -> String {
    let Rect { x, y, width, height } = place;
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"{class}\"><title>{}</title></rect>\n",
        width.max(0.3),
        height.max(0.3),
        escape(hint)
    )
}

/// The first text that fits, the part of the last that does, or nothing where that says nothing.
fn label(place: Rect, texts: &[String], ink: &str) -> String {
    let room = place.width - 2.0 * MARGIN;
    let (Some(last), true) = (texts.last(), place.height >= 14.0) else { return String::new() };
    let whole = texts.iter().find(|text| width(text, LETTERS) <= room).cloned();
    let Some(text) = whole.or_else(|| fitted(last, room, LETTERS)) else { return String::new() };
    format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" class=\"{ink}\">{}</text>\n",
        place.x + MARGIN,
        place.y + 13.0,
        escape(&text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Rect = Rect { x: 0.0, y: 0.0, width: 600.0, height: 400.0 };

    #[test]
    fn areas_are_in_proportion_and_the_first_row_is_that_of_the_paper() {
        // The example of the paper: 6 x 4, areas 6, 6, 4, 3, 2, 2, 1; here a hundred times as long and wide.
        let values = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let placed = squarified(&values, WHOLE);
        assert_eq!(placed[0], Rect { x: 0.0, y: 0.0, width: 300.0, height: 200.0 });
        assert_eq!(placed[1], Rect { x: 0.0, y: 200.0, width: 300.0, height: 200.0 });
        for (value, place) in values.iter().zip(&placed) {
            assert!((place.width * place.height - value * 10_000.0).abs() < 1e-6, "{place:?}");
            assert!(place.x + place.width <= 600.0 + 1e-6 && place.y + place.height <= 400.0 + 1e-6, "{place:?}");
        }
    }

    #[test]
    fn layers_are_one() {
        assert_eq!(all_layers("model.layers.11.mlp.experts.3"), "model.layers.*.mlp.experts.*");
        assert_eq!(all_layers("head"), "head");
    }

    #[test]
    fn nothing_and_one_thing_can_be_placed() {
        assert_eq!(squarified(&[], WHOLE), []);
        assert_eq!(squarified(&[5.0], WHOLE), [WHOLE]);
    }

    #[test]
    fn small_parts_are_put_together_and_no_time_is_lost() {
        let rows = (1..=100).map(|time| (format!("group {}", time % 20), format!("part {time}"), Nanos::new(time)));
        let groups = groups(rows);
        assert_eq!(groups.len(), GROUPS);
        let sum: f64 = groups.iter().flat_map(|group| &group.parts).map(|part| part.1).sum();
        assert_eq!(sum, 5050.0);
        assert_eq!(groups[GROUPS - 1].name, "9 more");
    }

    #[test]
    fn a_hostile_name_stays_text_and_no_number_is_missing() {
        let rows = [("<b>", "\"'><script>"), ("a", "b")]
            .map(|(group, part)| (group.to_owned(), part.to_owned(), Nanos::new(1)));
        let svg = draw("t", &groups(rows.into_iter()), |name| Colour::Family(name).class());
        assert!(!svg.contains("<script>") && !svg.contains("<b>") && !svg.contains("NaN"), "{svg}");
    }
}
