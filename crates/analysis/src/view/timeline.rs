//! Where the rows of a timeline belong, as its page and its export show it.

use types::timeline::{DeviceWork, Timeline, WorkKind};
use types::view::{NamedSpan, Places, TimelineView, WorkModules, WorkPlace};

use crate::attribution::{Attribution, StageInstance};
use crate::kernel::{Family, family_of_work};
use crate::time::Span;
use crate::{idle_stretches, placed_steps};

/// What is known of the rows of a timeline; `modules` of its work, where they are.
pub fn timeline<'a>(
    timeline: &'a Timeline,
    attribution: &'a Attribution,
    modules: &'a WorkModules,
) -> TimelineView<'a> {
    let family = move |work: &DeviceWork| family_of_work(work.kind, timeline.name(work.name));
    // A trace has millions of kernels and few names.
    let mut families: Vec<Option<Family>> = vec![None; timeline.names.len()];
    for work in timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel) {
        families[work.name.index()].get_or_insert_with(|| family(work));
    }
    let family_of = move |work: &DeviceWork| {
        let known = families[work.name.index()].filter(|_| work.kind == WorkKind::Kernel);
        known.unwrap_or_else(|| family(work))
    };
    let place = move |row: usize| WorkPlace {
        family: family_of(&timeline.work[row]).name(),
        launch: attribution.launch[row],
        operator: attribution.operator[row],
        range: attribution.range[row].map(|range| range.0),
        stage: attribution.stage[row],
    };
    // Waiting behind work that the trace does not hold is no time of a stage, and so its bar has a gap.
    let of_stage = |one: &StageInstance| {
        let own = one.behind.gaps(one.wall);
        own.as_slice().iter().map(|part| named(one.stage.name(), *part)).collect::<Vec<_>>()
    };
    let stages = attribution.stages.iter().flat_map(of_stage).collect();
    let steps = placed_steps(timeline, attribution).map(|steps| {
        let device = steps.list.iter().zip(steps.device);
        device.filter_map(|((_, step), device)| Some(named(&step.name, device?))).collect()
    });
    TimelineView {
        work: Places::new(place),
        modules: Some(modules),
        idle: idle_stretches(timeline, attribution),
        stages,
        steps: steps.unwrap_or_default(),
    }
}

fn named(name: &str, span: Span) -> NamedSpan {
    NamedSpan { name: name.to_owned(), start: span.start, length: span.length() }
}
