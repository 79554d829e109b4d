//! Placements made better by what engines say of every step.
//!
//! A request may be preempted: then it misses some steps, and a later one processes its prompt and all its tokens again. Steps then
//! have fewer sequences than requests were placed in them, and a request is moved where its output pauses and that mends it. Of
//! requests that are too many all the same, those whose output comes least promptly are served elsewhere, as by a replica that is
//! not recorded.

use std::cmp::Reverse;

use types::Nanos;

use super::placing::{Arrival, Placement, Places};
use super::server_steps::{ServerSteps, middle};

/// Rounds over all requests; each mends one preemption of a request.
const ROUNDS: usize = 32;

/// Placements with the moves that bring most steps to the number of sequences their engine says.
pub(super) fn improved(
    steps: &ServerSteps,
    places: &Places<'_>,
    requests: &[Arrival],
    mut placed: Vec<Option<Placement>>,
    moved: Nanos,
) -> Vec<Option<Placement>> {
    let mut book = Book::new(steps, &placed);
    for _ in 0..ROUNDS {
        let mut changed = false;
        for (request, placement) in requests.iter().zip(&mut placed) {
            let Some(now) = placement.as_mut() else { continue };
            if !book.is_wrong_at(now) {
                continue;
            }
            book.take(now);
            let resumed = book.first_crowded(now).and_then(|output| places.resumed(request, now, output, moved));
            if let Some(resumed) = resumed.filter(|resumed| book.cost_with(resumed) < book.cost_with(now)) {
                *now = resumed;
                changed = true;
            }
            book.put(now);
        }
        if !changed {
            break;
        }
    }
    let lateness = |place: &usize| {
        let delays =
            placed[*place].as_ref().map(|now| requests[*place].delays(steps, now, moved, ServerSteps::emitted));
        Reverse(middle(delays.into_iter().flatten().map(|(_, delay)| delay)))
    };
    let mut crowded: Vec<usize> =
        (0..placed.len()).filter(|place| placed[*place].as_ref().is_some_and(|now| book.is_crowded(now))).collect();
    crowded.sort_by_cached_key(lateness);
    for place in crowded {
        if let Some(elsewhere) = placed[place].take_if(|now| book.is_crowded(now)) {
            book.take(&elsewhere);
        }
    }
    placed
}

/// Per step: how many more sequences the engine says than are placed.
struct Book {
    decoding: Vec<i64>,
    prompts: Vec<i64>,
}

impl Book {
    fn new(steps: &ServerSteps, placed: &[Option<Placement>]) -> Self {
        let decoding = steps.list.iter().map(|step| step.generation.sequences as i64).collect();
        let prompts = steps.list.iter().map(|step| step.context.sequences as i64).collect();
        let mut book = Self { decoding, prompts };
        placed.iter().flatten().for_each(|placement| book.put(placement));
        book
    }

    fn change(&mut self, placement: &Placement, by: i64) {
        for (output, step) in placement.steps.iter().enumerate() {
            match placement.is_prompt(output) {
                true => self.prompts[*step] += by,
                false => self.decoding[*step] += by,
            }
        }
    }

    fn put(&mut self, placement: &Placement) {
        self.change(placement, -1);
    }

    fn take(&mut self, placement: &Placement) {
        self.change(placement, 1);
    }

    /// Whether a step of it has too many or too few.
    fn is_wrong_at(&self, placement: &Placement) -> bool {
        placement.steps.iter().enumerate().any(|(output, step)| match placement.is_prompt(output) {
            true => self.prompts[*step] < 0,
            false => self.decoding[*step] != 0,
        })
    }

    /// Whether most steps in which it decodes have too many.
    fn is_crowded(&self, placement: &Placement) -> bool {
        let steps = placement.steps.iter().enumerate().filter(|(output, _)| !placement.is_prompt(*output));
        let crowded = steps.clone().filter(|(_, step)| self.decoding[**step] < 0).count();
        crowded > 0 && crowded * 2 >= steps.count()
    }

    /// The first output of a request taken out that no sequence of its step is left for.
    fn first_crowded(&self, placement: &Placement) -> Option<usize> {
        let steps = placement.steps.iter().enumerate();
        let mut decoding = steps.filter(|(output, _)| !placement.is_prompt(*output));
        decoding.find(|(_, step)| self.decoding[**step] <= 0).map(|(output, _)| output)
    }

    /// How wrong all steps would be with it, apart from what is the same without.
    fn cost_with(&self, placement: &Placement) -> i64 {
        let cost = placement.steps.iter().enumerate().map(|(output, step)| {
            let left = if placement.is_prompt(output) { self.prompts[*step] } else { self.decoding[*step] };
            // One place less: a step that lacks sequences gains by it, one that has enough loses.
            if left > 0 { -1 } else { 1 }
        });
        cost.sum()
    }
}
