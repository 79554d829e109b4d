//! Requests in steps of which only times are known: nothing says what they process.
//!
//! With the right offset of the clocks nearly every output arrives promptly, as steps that took longer hold up the outputs of all
//! requests that decode; with any other offset, or requests of another run, few do. Where output leaves the engine some steps late,
//! all of it does: prompts tell by how many, since the steps that end them take longer and cannot start before a request is there.

use std::cmp::Reverse;

use types::{Nanos, OffsetBasis};

use super::offset::{Offset, VOTERS, around, before, best, quick_return, winners};
use super::placing::{Arrival, Placement, Places};
use super::server_steps::{Group, ServerSteps, middle};

/// Of all steps, the longest one in so many is first taken for one with prompts.
const LONGEST: usize = 8;
/// An output that comes so much later than its step may be of one that came after a preemption.
const LATE: Nanos = Nanos::new(20_000_000);
/// Preemptions of one request that are looked for.
const PREEMPTIONS: usize = 32;
/// Steps that output may leave the engine after its own.
const STEPS_LATE: usize = 3;
/// Steps with prompts alone must explain one in so many outputs that steps with everything do not.
const APART_EXPLAINS: usize = 20;
/// How often steps are marked anew by what arrives behind them.
const ROUNDS: usize = 4;

/// The offset with which most outputs are prompt, and what steps then process; `None` where too few are.
pub(super) fn inferred(
    steps: &ServerSteps,
    requests: &[Arrival],
    known: Option<Nanos>,
) -> Option<(ServerSteps, Offset)> {
    let few: Vec<_> = requests.iter().step_by(requests.len().div_ceil(VOTERS).max(1)).cloned().collect();
    let outputs: usize = few.iter().map(|request| request.outputs).sum();
    let together = marked(steps, |_| true);
    let (moved, explained) = Search::new(&together, &few).best(known)?;
    let is_better = |apart: &Marked| apart.explained > explained + outputs / APART_EXPLAINS;
    let unexplained = explained + outputs / APART_EXPLAINS < outputs;
    let apart = unexplained.then(|| prompts_apart(steps, &few, known)).flatten().filter(is_better);
    let (marked, moved) = apart.map_or((together, moved), |apart| (apart.steps, apart.moved));
    let search = Search::new(&marked, requests);
    let placed = search.resumed(moved);
    if !search.places.are_prompt(requests, &placed, moved) {
        return None;
    }
    // Output that leaves late is not told from steps without it. The parts of prompts look like their ends: the fewest steps that will do.
    let most = if search.places.all_decode() { STEPS_LATE } else { 0 };
    let mut shifted: Vec<_> = (0..=most).filter_map(|by| search.shifted(&placed, by, moved, known)).collect();
    let longest = shifted.iter().map(|(beyond, _)| beyond.get()).max()?;
    let fewest = shifted.iter().position(|(beyond, _)| beyond.get() * 10 >= longest * 9).unwrap_or(0);
    let (_, mut found) = shifted.swap_remove(fewest);
    let long = search.long(&found.placed);
    if let Some(long) = long.filter(|_| search.places.all_decode()) {
        search.settle(&mut found, moved, long);
    }
    let mut composed = composed(steps, requests, &found.placed);
    match long {
        Some(long) => begin_prompts(&mut composed, requests, &found, &search.work, long),
        None => composed.hides_prompts = true,
    }
    Some((composed, found))
}

/// Steps that may all end prompts, and of which some decode.
fn marked(steps: &ServerSteps, decodes: impl Fn(usize) -> bool) -> ServerSteps {
    let mut steps = steps.clone();
    let anything = Group { sequences: 1, tokens: 1 };
    for (place, step) in steps.list.iter_mut().enumerate() {
        (step.context, step.generation) = (anything, if decodes(place) { anything } else { Group::default() });
    }
    steps
}

/// Steps marked, with the offset that fits and how many outputs are then prompt.
struct Marked {
    steps: ServerSteps,
    moved: Nanos,
    explained: usize,
}

/// Steps of an engine in which no request decodes while prompts are processed: at first those that take longer, then those behind
/// which the output of most requests that decode is missing.
fn prompts_apart(steps: &ServerSteps, requests: &[Arrival], known: Option<Nanos>) -> Option<Marked> {
    let tried = |steps: ServerSteps| {
        let (moved, explained) = Search::new(&steps, requests).best(known)?;
        Some(Marked { steps, moved, explained })
    };
    let work = Search::new(steps, requests).work;
    let long = Nanos::new(middle(work.iter().copied())?.get() / 2 * 3);
    let mut best = tried(marked(steps, |place| work[place] <= long))?;
    for _ in 0..ROUNDS {
        let decodes = with_output(&best.steps, requests, best.moved);
        match tried(marked(steps, |place| decodes[place])) {
            Some(next) if next.explained > best.explained => best = next,
            _ => break,
        }
    }
    Some(best)
}

/// Per step, whether output of at least half of the requests that decode arrives before the next one ends; as before where none does.
fn with_output(steps: &ServerSteps, requests: &[Arrival], moved: Nanos) -> Vec<bool> {
    let behind = |time: Nanos| steps.list.partition_point(|step| step.device.end <= time + moved).checked_sub(1);
    let (mut outputs, mut active) = (vec![0_i64; steps.list.len()], vec![0_i64; steps.list.len() + 1]);
    for chunks in requests.iter().map(|request| &request.chunks) {
        let places: Vec<_> = chunks.iter().filter_map(|chunk| behind(*chunk)).collect();
        let Some((first, later)) = places.split_first() else { continue };
        later.iter().for_each(|place| outputs[*place] += 1);
        active[first + 1] += 1;
        if let Some(last) = later.last().filter(|last| *last > first) {
            active[last + 1] -= 1;
        } else {
            active[first + 1] -= 1;
        }
    }
    let mut decoding = 0;
    let rows = steps.list.iter().zip(outputs).zip(active);
    rows.map(|((step, outputs), change)| {
        decoding += change;
        if decoding > 0 { outputs * 2 >= decoding } else { step.generation.sequences > 0 }
    })
    .collect()
}

struct Search<'a> {
    steps: &'a ServerSteps,
    places: Places<'a>,
    requests: &'a [Arrival],
    /// Per step: how long the device is busy.
    work: Vec<Nanos>,
}

impl<'a> Search<'a> {
    fn new(steps: &'a ServerSteps, requests: &'a [Arrival]) -> Self {
        // Launches may take as long as the work of a prompt: what counts is how long the device is busy.
        let work = steps.list.iter().map(|step| steps.busy.total_within(step.device)).collect();
        Self { places: Places::new(steps), steps, requests, work }
    }

    /// The offset with which most outputs are prompt, and how many.
    fn best(&self, known: Option<Nanos>) -> Option<(Nanos, usize)> {
        let moved = self.offset(known)?;
        Some((moved, self.places.all_prompt(self.requests, &self.resumed(moved), moved)))
    }

    fn at(&self, moved: Nanos) -> Vec<Option<Placement>> {
        self.requests.iter().map(|request| self.places.place(request, moved)).collect()
    }

    fn offset(&self, known: Option<Nanos>) -> Option<Nanos> {
        let score = |moved: &Nanos| self.places.all_prompt(self.requests, &self.at(*moved), *moved);
        let fine = (self.places.median_step.get() / 16).clamp(100_000, 1_000_000);
        let apart = fine * 4;
        let votes = || [LONGEST, 1].into_iter().flat_map(|one_in| winners(self.votes(one_in)));
        let offsets: Vec<Nanos> = match known {
            Some(known) => before(known, apart).collect(),
            None => votes().flat_map(|one| around(one, apart)).collect(),
        };
        let coarse = best(offsets.into_iter(), score)?;
        best((-4..=4).map(|place| coarse + Nanos::new(place * fine)), score)
    }

    /// Every pair of a request and one of the longest steps.
    fn votes(&self, one_in: usize) -> Vec<i64> {
        let mut devices: Vec<_> = self.steps.list.iter().map(|step| step.device).collect();
        devices.sort_by_key(|device| Reverse(device.length()));
        devices.truncate(devices.len().div_ceil(one_in));
        let first = |request: &Arrival| request.chunks[0];
        self.requests
            .iter()
            .map(first)
            .flat_map(|first| devices.iter().map(move |device| (device.end - first).get()))
            .collect()
    }

    /// Continues requests later whose outputs stay late from one on, where that makes more of them prompt.
    fn resumed(&self, moved: Nanos) -> Vec<Option<Placement>> {
        let mut placed = self.at(moved);
        for (request, placement) in self.requests.iter().zip(&mut placed) {
            let Some(now) = placement else { continue };
            for _ in 0..PREEMPTIONS {
                let late = request.delays(self.steps, now, moved, ServerSteps::ended).find(|(_, delay)| *delay > LATE);
                let resumed = late.and_then(|(late, _)| self.places.resumed(request, now, late, moved));
                let prompt = |one: &Placement| self.places.prompt(request, one, moved);
                let is_better = |one: &Placement| prompt(one) > prompt(now);
                let Some(resumed) = resumed.filter(is_better) else { break };
                *now = resumed;
            }
        }
        placed
    }

    /// Steps that take longer than this process prompts, if most that end one do.
    fn long(&self, placed: &[Option<Placement>]) -> Option<Nanos> {
        let usual = middle(self.work.iter().copied())?;
        let prompts = placed.iter().flatten().filter(|one| one.from_prompt).map(|one| self.work[one.steps[0]]);
        let long = Nanos::new(usual.get() / 2 * 3);
        (middle(prompts)? > long).then_some(long)
    }

    /// Moves requests by a step whose prompt would be processed by one as short as those that only decode, beside a long one.
    fn settle(&self, found: &mut Offset, moved: Nanos, long: Nanos) {
        let last = self.steps.list.len();
        let is_long = |place: usize| self.work.get(place).is_some_and(|work| *work > long);
        let rows = self.requests.iter().zip(&mut found.placed);
        for (request, now) in rows.filter_map(|(request, one)| Some((request, one.as_mut()?))) {
            let first = now.steps[0];
            if !now.from_prompt || is_long(first) {
                continue;
            }
            let later = is_long(first + 1).then(|| Placement {
                steps: now.steps.iter().map(|step| step + 1).filter(|step| *step < last).collect(),
                ..now.clone()
            });
            let sooner = (first > 0 && is_long(first - 1)).then(|| earlier(now, 1)).flatten();
            let is_there = |one: &Placement| self.steps.list[one.steps[0]].host.start >= request.due + found.ns;
            let holds = |one: &Placement| {
                request
                    .delays(self.steps, one, moved, ServerSteps::ended)
                    .filter(|(_, delay)| *delay < Nanos::ZERO)
                    .count()
                    * 10
                    < one.steps.len()
            };
            let better = later.filter(holds).or(sooner.filter(is_there));
            *now = better.unwrap_or_else(|| now.clone());
        }
    }

    /// The same with all outputs made some steps earlier, and how much longer the device is then busy with steps that end prompts
    /// than with those behind them; `None` where requests would be served before they were there.
    fn shifted(
        &self,
        placed: &[Option<Placement>],
        by: usize,
        moved: Nanos,
        known: Option<Nanos>,
    ) -> Option<(Nanos, Offset)> {
        let placed: Vec<_> = placed.iter().map(|one| earlier(one.as_ref()?, by)).collect();
        let (ns, basis) = match known {
            Some(known) => (known, OffsetBasis::SameClock),
            None => {
                let quickest = quick_return(self.steps, self.requests, &placed, moved, ServerSteps::ended)?;
                (moved - quickest + self.steps.shortest_return(), OffsetBasis::Fitted)
            }
        };
        let known = self.requests.iter().zip(&placed).filter_map(|(request, one)| Some((request, one.as_ref()?)));
        let prompts: Vec<_> = known.filter(|(_, placement)| placement.from_prompt).collect();
        let ends = || prompts.iter().map(|(_, placement)| placement.steps[0]);
        let starts = prompts.iter().map(|(request, _)| request.due + ns);
        let too_early = ends().zip(starts).filter(|(end, due)| self.steps.list[*end].host.start < *due).count();
        if too_early * 10 > prompts.len() {
            return None;
        }
        let work = |place: usize| self.work.get(place).copied().unwrap_or_default();
        let beyond = |end: usize| work(end) - work(end + 1);
        let beyond = middle(ends().map(beyond))?;
        Some((beyond, Offset { ns, basis, placed }))
    }
}

/// A request with all outputs some steps earlier; those that then precede the trace are left out.
fn earlier(placement: &Placement, by: usize) -> Option<Placement> {
    let lost = placement.steps.iter().take_while(|step| **step < by).count();
    let steps: Vec<_> = placement.steps[lost..].iter().map(|step| step - by).collect();
    let again = placement.again.iter().filter_map(|output| output.checked_sub(lost)).collect();
    let from_prompt = placement.from_prompt && lost == 0;
    (!steps.is_empty()).then_some(Placement { before: placement.before + lost, from_prompt, again, steps })
}

/// Steps with the sequences of the requests placed in them; a prompt is first taken to be processed by the step that ends it.
fn composed(steps: &ServerSteps, requests: &[Arrival], placed: &[Option<Placement>]) -> ServerSteps {
    let mut steps = steps.clone();
    steps.list.iter_mut().for_each(|step| (step.context, step.generation) = Default::default());
    for (request, placement) in requests.iter().zip(placed).filter_map(|(request, one)| Some((request, one.as_ref()?)))
    {
        for (output, place) in placement.steps.iter().enumerate() {
            let step = &mut steps.list[*place];
            let (group, tokens) = match placement.is_prompt(output) {
                true => {
                    (&mut step.context, request.prompt.unwrap_or(1).saturating_add((placement.before + output) as u64))
                }
                false => (&mut step.generation, 1),
            };
            *group = Group { sequences: group.sequences + 1, tokens: group.tokens.saturating_add(tokens) };
        }
    }
    steps
}

/// Prompts begin in long steps just before the one that ends them, where those end no prompt.
fn begin_prompts(steps: &mut ServerSteps, requests: &[Arrival], found: &Offset, work: &[Nanos], long: Nanos) {
    for (request, placement) in requests.iter().zip(&found.placed) {
        let end = placement.as_ref().filter(|one| one.from_prompt).map(|one| one.steps[0]);
        let Some((end, prompt)) = end.zip(request.prompt) else { continue };
        let begins = |place: &usize| {
            let step = &steps.list[*place];
            let is_free = step.context.sequences == 0 && step.host.start >= request.due + found.ns;
            is_free && work[*place] > long
        };
        let begin = (0..end).rev().take_while(begins).last().unwrap_or(end);
        let length = |place: usize| work[place].get() as f64;
        let all: f64 = (begin..=end).map(length).sum();
        let tokens: Vec<_> = (begin..end).map(|place| (prompt as f64 * length(place) / all) as u64).collect();
        for (place, tokens) in (begin..end).zip(tokens) {
            steps.list[place].context = Group { sequences: 1, tokens };
            let last = &mut steps.list[end].context;
            last.tokens = last.tokens.saturating_sub(tokens).max(last.sequences);
        }
    }
}
