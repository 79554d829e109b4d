//! Where the rows of a timeline belong, as its page and its export show it.

use types::timeline::Timeline;
use types::view::{NamedSpan, Places, TimelineView, WorkPlace};

use crate::attribution::Attribution;
use crate::kernel::family_of_work;
use crate::time::Span;
use crate::{idle_stretches, placed_steps};

/// What is known of the rows of a timeline.
pub fn timeline<'a>(timeline: &'a Timeline, attribution: &'a Attribution) -> TimelineView<'a> {
    let place = move |row: usize| WorkPlace {
        family: family_of_work(timeline.work[row].kind, timeline.name(timeline.work[row].name)).name(),
        launch: attribution.launch[row],
        operator: attribution.operator[row],
        range: attribution.range[row].map(|range| range.0),
        stage: attribution.stage[row],
    };
    let stages = attribution.stages.iter().map(|one| named(one.stage.name(), one.wall)).collect();
    let steps = placed_steps(timeline, attribution).map(|steps| {
        let device = steps.list.iter().zip(steps.device);
        device.filter_map(|((_, step), device)| Some(named(&step.name, device?))).collect()
    });
    TimelineView {
        work: Places::new(place),
        idle: idle_stretches(timeline, attribution),
        stages,
        steps: steps.unwrap_or_default(),
    }
}

fn named(name: &str, span: Span) -> NamedSpan {
    NamedSpan { name: name.to_owned(), start: span.start, length: span.length() }
}
