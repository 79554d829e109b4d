//! Where the rows of a timeline belong, as its page and its export show it.

use types::timeline::Timeline;
use types::view::{NamedSpan, Places, TimelineView, WorkModules, WorkPlace};

use crate::attribution::{Attribution, StageInstance};
use crate::kernel::family_of_work;
use crate::time::Span;
use crate::{idle_stretches, placed_steps};

/// What is known of the rows of a timeline; `modules` of its work, where they are.
pub fn timeline<'a>(
    timeline: &'a Timeline,
    attribution: &'a Attribution,
    modules: &'a WorkModules,
) -> TimelineView<'a> {
    let place = move |row: usize| WorkPlace {
        family: family_of_work(timeline.work[row].kind, timeline.name(timeline.work[row].name)).name(),
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
