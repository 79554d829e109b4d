//! What is known of device work beyond its name and time, each combination once.

use std::collections::HashMap;

use types::Stage;
use types::timeline::{DeviceWork, LaunchShapeId, NameId, SignatureId, Timeline};
use types::view::WorkPlace;

use crate::words::cause::family;

/// What a combination is made of in one timeline, before it is text: the family and the stage, the operator and its shapes, the range,
/// how it was launched or how much it moved, and where the path of the module lies.
type Parts = (
    (&'static str, Option<Stage>),
    Option<(NameId, Option<SignatureId>)>,
    Option<NameId>,
    (Option<LaunchShapeId>, Option<u64>),
    Option<*const str>,
);

/// Texts, and combinations of them.
pub(super) struct Details {
    /// Of the timeline at hand: a trace has millions of kernels and few combinations.
    known: HashMap<Parts, u32>,
    places: HashMap<String, u32>,
    rows: HashMap<[u32; 7], u32>,
    pub(super) texts: Vec<String>,
    pub(super) details: Vec<[u32; 7]>,
}

impl Default for Details {
    fn default() -> Self {
        let (texts, details) = (vec![String::new()], vec![[0; 7]]);
        Self { known: HashMap::new(), places: HashMap::new(), rows: HashMap::new(), texts, details }
    }
}

impl Details {
    /// Parts of another timeline follow, which mean something else.
    pub(super) fn next_timeline(&mut self) {
        self.known.clear();
    }

    /// The place of what is known of this work.
    pub(super) fn of(
        &mut self,
        timeline: &Timeline,
        work: &DeviceWork,
        place: &WorkPlace,
        module: Option<&str>,
    ) -> u32 {
        let operator = place.operator.and_then(|row| timeline.operators.get(row as usize));
        let range = place.range.and_then(|row| timeline.ranges.get(row as usize));
        let parts = (
            (place.family, place.stage),
            operator.map(|one| (one.name, one.signature)),
            range.map(|one| one.name),
            (work.launch, work.bytes.map(|bytes| bytes.get())),
            module.map(std::ptr::from_ref),
        );
        if let Some(known) = self.known.get(&parts) {
            return *known;
        }
        let signature = operator.and_then(|one| one.signature).map(|one| timeline.signatures.get(one));
        let shapes = signature.map(|one| format!("{:?}", one.shapes)).filter(|shapes| shapes != "[]");
        let row = [
            self.text(family(place.family)),
            place.stage.map_or(0, |stage| self.text(stage.name())),
            operator.map_or(0, |one| self.text(timeline.name(one.name))),
            shapes.map_or(0, |shapes| self.text(&shapes)),
            range.map_or(0, |one| self.text(timeline.name(one.name))),
            launch(timeline, work).map_or(0, |launch| self.text(&launch)),
            module.map_or(0, |module| self.text(module)),
        ];
        let details = &mut self.details;
        let found = *self.rows.entry(row).or_insert_with(|| {
            details.push(row);
            details.len() as u32 - 1
        });
        self.known.insert(parts, found);
        found
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        self.texts.push(text.to_owned());
        let place = self.texts.len() as u32 - 1;
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// `grid 128 x 1 x 1, block 256 x 1 x 1, 32 registers`, or how much a copy moved.
fn launch(timeline: &Timeline, work: &DeviceWork) -> Option<String> {
    let Some(shape) = work.launch.map(|shape| timeline.launch_shapes.get(shape)) else {
        return work.bytes.map(|bytes| bytes.to_string());
    };
    let size = |[x, y, z]: [u32; 3]| format!("{x} x {y} x {z}");
    let registers = shape.registers.map(|count| format!(", {count} registers per thread")).unwrap_or_default();
    let shared = shape.shared_total_bytes.or_else(|| {
        let parts = [shape.shared_static_bytes, shape.shared_dynamic_bytes];
        parts.into_iter().flatten().reduce(u32::saturating_add)
    });
    let shared = shared.filter(|bytes| *bytes > 0).map(|bytes| format!(", {bytes} B shared memory"));
    Some(format!("grid {}, block {}{registers}{}", size(shape.grid), size(shape.block), shared.unwrap_or_default()))
}
