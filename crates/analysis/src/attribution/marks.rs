//! Ranges that name a stage or a decode step, and the launches inside them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use types::timeline::{RangeStyle, ThreadId, Timeline};
use types::{Nanos, Stage};

use super::aside::Asides;
use super::launch::{Launches, NONE};
use super::nesting::Open;
use super::stage::{Inference, StageInstance, StageOrigin};
use super::stages::Stages;
use super::step::StepInstance;
use crate::time::Span;

/// A range that means something here.
#[derive(Clone, Debug)]
struct Mark {
    /// The stage it names; absent for a decode step.
    stage: Option<Stage>,
    span: Span,
    thread: ThreadId,
    style: RangeStyle,
    clipped: bool,
}

/// Stages from ranges; `None` where no range names one. `last` is when the trace ended.
pub(super) fn stages(timeline: &Timeline, launches: &Launches, last: Nanos) -> Option<Stages> {
    let mut marks = marks(timeline, last);
    if marks.is_empty() {
        return None;
    }
    let named = marks.iter().filter(|mark| mark.stage.is_some());
    let mut asides = Asides::find(timeline, named.map(|mark| (mark.style, mark.thread, mark.span)), last);
    let aside = |mark: &Mark| asides.hold(timeline, mark.thread, mark.span.start);
    if marks.iter().all(aside) {
        // A trace of nothing but a warm-up is about the warm-up.
        asides = Asides::default();
    } else if !asides.is_empty() {
        marks.retain(|mark| !aside(mark));
    }
    let mut lanes = Lanes::new(timeline, launches, &marks);
    let strays = strays(&marks, &lanes.sweep(&marks, launches));
    if strays.contains(&true) {
        let mut stray = strays.into_iter();
        marks.retain(|_| !stray.next().unwrap_or_default());
        lanes = Lanes::new(timeline, launches, &marks);
    }
    let orphans = orphans(&marks, &lanes.sweep(&marks, launches));
    if !orphans.is_empty() {
        marks.extend(orphans);
        marks.sort_by_key(order);
        lanes = Lanes::new(timeline, launches, &marks);
    }
    let sweep = lanes.sweep(&marks, launches);
    Some(Stages { asides, ..build(launches, &marks, &sweep) })
}

fn order(mark: &Mark) -> (Nanos, Reverse<Nanos>, bool) {
    (mark.span.start, Reverse(mark.span.end), mark.stage.is_none())
}

fn marks(timeline: &Timeline, last: Nanos) -> Vec<Mark> {
    // Few names mean anything; looking them up once keeps millions of other ranges cheap.
    let meaning = |name: &str| Stage::from_range(None, name).map(Some).or_else(|| is_step(name).then_some(None));
    let meanings: Vec<Option<Option<Stage>>> = timeline.names.iter().map(|(_, name)| meaning(name)).collect();
    let mark = |range: &types::timeline::Range| {
        let stage = meanings[range.name.index()]?;
        if !matches!(range.domain.map(|domain| timeline.name(domain)), None | Some("" | "LLM")) {
            return None;
        }
        let span = Span::new(range.start, range.end.unwrap_or(last));
        Some(Mark { stage, span, thread: range.thread, style: range.style, clipped: range.end.is_none() })
    };
    let mut marks: Vec<Mark> = timeline.ranges.iter().filter_map(mark).collect();
    marks.sort_by_key(order);
    marks
}

/// `decode_step`, also with a number behind it.
fn is_step(name: &str) -> bool {
    let rest = name.strip_prefix("decode_step").map(|rest| rest.trim_start_matches(['_', ' ', '#', ':', '-']));
    rest.is_some_and(|rest| rest.bytes().all(|letter| letter.is_ascii_digit()))
}

/// Which marks each thread sees: those it pushed, and those started by handle anywhere in its process.
struct Lanes(BTreeMap<u32, Vec<u32>>);

/// What was open around each mark and each launch; places of marks.
struct Sweep {
    /// Per mark: the stage mark around it.
    parent: Vec<Option<u32>>,
    /// Per launch, or [`NONE`].
    stage: Vec<u32>,
    /// Per launch, or [`NONE`].
    step: Vec<u32>,
}

impl Sweep {
    /// Whether a mark lies in a stage, at any depth.
    fn is_inside(&self, marks: &[Mark], place: usize, stage: Stage) -> bool {
        let mut around = std::iter::successors(self.parent[place], |parent| self.parent[*parent as usize]);
        around.any(|parent| marks[parent as usize].stage == Some(stage))
    }
}

impl Lanes {
    fn new(timeline: &Timeline, launches: &Launches, marks: &[Mark]) -> Self {
        let process = |thread: u32| timeline.threads[thread as usize].process;
        let mut lanes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (place, mark) in marks.iter().enumerate() {
            lanes.entry(mark.thread.0).or_default().push(place as u32);
        }
        let launching = (0..timeline.threads.len()).filter(|thread| !launches.calls.span(*thread).is_empty());
        let threads: Vec<u32> = launching.map(|thread| thread as u32).collect();
        for (place, mark) in marks.iter().enumerate().filter(|(_, mark)| mark.style == RangeStyle::StartEnd) {
            let others = threads.iter().filter(|thread| **thread != mark.thread.0);
            for thread in others.filter(|thread| process(**thread) == process(mark.thread.0)) {
                lanes.entry(*thread).or_default().push(place as u32);
            }
        }
        // Marks are in order, so their places are too.
        lanes.values_mut().for_each(|lane| lane.sort_unstable());
        Self(lanes)
    }

    fn sweep(&self, marks: &[Mark], launches: &Launches) -> Sweep {
        let mut sweep = Sweep {
            parent: vec![None; marks.len()],
            stage: vec![NONE; launches.len()],
            step: vec![NONE; launches.len()],
        };
        for (thread, lane) in &self.0 {
            let (mut stages, mut steps) = (Open::default(), Open::default());
            let of_thread = launches.calls.span(*thread as usize);
            let (mut launch, until) = (of_thread.start, of_thread.end);
            let mut place_until = |moment: Option<Nanos>, stages: &mut Open, steps: &mut Open| {
                while launch < until && moment.is_none_or(|moment| launches.starts[launch] < moment) {
                    sweep.stage[launch] = stages.innermost(launches.starts[launch]).unwrap_or(NONE);
                    sweep.step[launch] = steps.innermost(launches.starts[launch]).unwrap_or(NONE);
                    launch += 1;
                }
            };
            for place in lane.iter().copied() {
                let mark = &marks[place as usize];
                place_until(Some(mark.span.start), &mut stages, &mut steps);
                let parent = match mark.stage {
                    Some(_) => stages.open(place, mark.span.start, mark.span.end),
                    None => {
                        steps.open(place, mark.span.start, mark.span.end);
                        stages.innermost(mark.span.start)
                    }
                };
                if mark.thread.0 == *thread {
                    sweep.parent[place as usize] = parent;
                }
            }
            place_until(None, &mut stages, &mut steps);
        }
        sweep
    }
}

/// Which marks are of a part of a stage, such as vision, and lie outside of that stage while others of the part lie inside: hooks
/// mark a warm-up too, which is not marked itself. Where all lie outside, the part is a stage of its own.
fn strays(marks: &[Mark], sweep: &Sweep) -> Vec<bool> {
    let top = |stage: Stage| std::iter::successors(Some(stage), |stage| stage.parent()).last().unwrap_or(stage);
    let inside = |place: usize, stage: Stage| sweep.is_inside(marks, place, top(stage));
    let parts = || {
        let part = |(place, mark): (usize, &Mark)| Some((place, mark.stage.filter(|stage| stage.parent().is_some())?));
        marks.iter().enumerate().filter_map(part)
    };
    let held: BTreeSet<Stage> =
        parts().filter(|(place, stage)| inside(*place, *stage)).map(|(_, stage)| stage).collect();
    let mut strays = vec![false; marks.len()];
    for (place, stage) in parts() {
        strays[place] = held.contains(&stage) && !inside(place, stage);
    }
    strays
}

/// Runs of decode for steps that no range named `decode` holds: neighbours on a thread with no other stage between.
fn orphans(marks: &[Mark], sweep: &Sweep) -> Vec<Mark> {
    let mut runs: BTreeMap<u32, Mark> = BTreeMap::new();
    let mut done = Vec::new();
    for (place, mark) in marks.iter().enumerate() {
        match mark.stage {
            Some(_) => done.extend(runs.remove(&mark.thread.0)),
            None if sweep.is_inside(marks, place, Stage::Decode) => {}
            None => {
                let run =
                    runs.entry(mark.thread.0).or_insert_with(|| Mark { stage: Some(Stage::Decode), ..mark.clone() });
                run.span = run.span.hull(mark.span);
                run.clipped |= mark.clipped;
            }
        }
    }
    done.extend(runs.into_values());
    done
}

fn build(launches: &Launches, marks: &[Mark], sweep: &Sweep) -> Stages {
    let mut stages: Vec<StageInstance> = Vec::new();
    let mut steps: Vec<StepInstance> = Vec::new();
    // Per mark: its place among the stages or the steps.
    let mut places = vec![NONE; marks.len()];
    let mut counted: BTreeMap<Option<u32>, u32> = BTreeMap::new();
    for (place, mark) in marks.iter().enumerate() {
        let parent = sweep.parent[place].map(|parent| places[parent as usize]);
        let Some(stage) = mark.stage else {
            places[place] = steps.len() as u32;
            let number = counted.entry(parent).or_default();
            steps.push(StepInstance::new(*number, parent, mark.span));
            *number += 1;
            continue;
        };
        // A range inside one of the same stage says the same twice.
        if let Some(parent) = parent.filter(|parent| stages[*parent as usize].stage == stage) {
            places[place] = parent;
            continue;
        }
        places[place] = stages.len() as u32;
        let instance = StageInstance::new(stage, mark.span, mark.thread, StageOrigin::Ranges);
        stages.push(StageInstance { parent, clipped: mark.clipped, ..instance });
    }
    let place = |mark: Option<u32>| mark.map(|mark| places[mark as usize]);
    Stages {
        instance: launches.per_work(&sweep.stage).map(place).collect(),
        step: launches.per_work(&sweep.step).map(place).collect(),
        stages,
        steps,
        inference: Inference::NotNeeded,
        asides: Asides::default(),
    }
}
