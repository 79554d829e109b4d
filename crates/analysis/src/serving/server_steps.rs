//! Steps of a server on the clock of its trace, with the sequences and tokens that the engine annotates.

use types::timeline::{DeviceWork, HostCall, Timeline};
use types::{IdleCause, Nanos, StepBasis};

use crate::evidence::{Apart, PlacedTimeline};
use crate::kernel::{Family, family_of_work};
use crate::steps::{PlacedSteps, placed_steps};
use crate::time::{Span, Spans, cause_of_call};

/// A step that the host starts later than this after the one before was not scheduled ahead.
const SOON: Nanos = Nanos::new(5_000_000);

/// Some sequences of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    /// How many.
    pub(super) sequences: u64,
    /// Their tokens.
    pub(super) tokens: u64,
}

/// One step that processed something.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerStep {
    /// Its place in `steps.list`.
    pub(super) index: u64,
    /// While the host prepares and launches it.
    pub(super) host: Span,
    /// From the start of its first work on the device to the end of its last.
    pub(super) device: Span,
    /// Sequences whose prompt it processes.
    pub(super) context: Group,
    /// Sequences that decode.
    pub(super) generation: Group,
}

impl ServerStep {
    /// Tokens that it processes.
    pub(super) fn tokens(&self) -> u64 {
        self.context.tokens.saturating_add(self.generation.tokens)
    }
}

/// The steps of one server, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerSteps {
    /// One by one.
    pub(super) list: Vec<ServerStep>,
    /// The device is busy with anything.
    pub(super) busy: Spans,
    /// When the host has waited for the device: then it knows tokens. Empty where that is not recorded.
    pub(super) waited: Vec<Nanos>,
    /// Only their times are known: nothing says what they process.
    pub(super) unannotated: bool,
    /// Nothing shows in how many steps a prompt is processed before the one that ends it.
    pub(super) hides_prompts: bool,
}

impl ServerSteps {
    /// Steps of the first timeline whose engine says what each step processes, else of the first whose passes end with kernels that
    /// choose a token; and its place. Ranks of one server have the same passes: of several servers, nothing says which one served whom.
    pub(super) fn of(timelines: &[PlacedTimeline<'_>]) -> Result<(Self, usize), Apart> {
        let placed: Vec<_> = timelines.iter().map(|placed| placed_steps(placed.timeline, placed.attribution)).collect();
        let of = |of_steps: fn(&PlacedSteps) -> Vec<ServerStep>| {
            let mut lists = placed.iter().map(|steps| steps.as_ref().map(of_steps).unwrap_or_default());
            lists.by_ref().enumerate().find(|(_, list)| !list.is_empty())
        };
        let annotated = of(annotated);
        let unannotated = annotated.is_none();
        let (place, mut list) = annotated.or_else(|| of(passes)).ok_or(Apart::NoSteps)?;
        let are_others = |steps: &PlacedSteps| {
            let count = passes(steps).len();
            count > 0 && count.abs_diff(list.len()) * 20 > list.len()
        };
        if unannotated && placed.iter().flatten().any(are_others) {
            return Err(Apart::SeveralServers);
        }
        let work = timelines[place].timeline.work.iter();
        let busy = Spans::union(work.map(|work| Span::new(work.start, work.end())));
        if unannotated {
            let layers = layers(timelines[place].timeline);
            list.iter_mut().for_each(|step| step.device = prepared(&busy, &layers, step.device));
        }
        let waited = waited(timelines[place].timeline);
        Ok((Self { list, busy, waited, unannotated, hides_prompts: false }, place))
    }

    /// When the last one ends.
    pub(super) fn end(&self) -> Nanos {
        self.list.last().map_or(Nanos::ZERO, |step| step.device.end)
    }

    /// When the device has done a step.
    pub(super) fn ended(&self, place: usize) -> Nanos {
        self.list[place].device.end
    }

    /// When the output of a step leaves the engine: once the host has waited for its tokens. Engines that schedule ahead launch the next
    /// step first, and wait before they start the one after it.
    pub(super) fn emitted(&self, place: usize) -> Nanos {
        let end = self.ended(place);
        // How long the host launches a pass is not known: until the next one, it seems.
        let host = |place: usize| self.list.get(place).map(|step| step.host).filter(|_| !self.unannotated);
        let ahead = host(place + 1).filter(|next| next.start - end <= SOON);
        let launched = ahead.map_or(end, |next| end.max(next.end));
        let until = host(place + 1 + usize::from(ahead.is_some())).map(|next| next.start);
        let waited = self.waited.get(self.waited.partition_point(|at| *at < launched)).copied();
        waited.filter(|at| until.is_some_and(|until| *at <= until)).unwrap_or(launched)
    }

    /// Assumed: one output in a hundred takes this time or less from the engine to a client on the same machine. Measured for vLLM 0.24
    /// on an H200: 0.98 ms from when the host has waited for the tokens of a model of 8 billion parameters (0.65 to 1.0 ms, estimated,
    /// for smaller ones); where waits are not recorded, 0.8 to 2.8 ms from its last launch, of seven loads.
    pub(super) fn shortest_return(&self) -> Nanos {
        let are_known = !self.unannotated && !self.waited.is_empty();
        Nanos::new(if are_known { 850_000 } else { 1_100_000 })
    }

    /// When the host starts the first one.
    pub(super) fn start(&self) -> Nanos {
        self.list.first().map_or(Nanos::ZERO, |step| step.host.start)
    }

    /// Places of steps that decode.
    pub(super) fn decoding(&self) -> Vec<usize> {
        (0..self.list.len()).filter(|place| self.list[*place].generation.sequences > 0).collect()
    }

    /// Whether a sequence gets one token a step, as without speculation.
    pub(super) fn one_token_each(&self) -> bool {
        let wide = self.list.iter().filter(|step| step.generation.tokens > step.generation.sequences).count();
        wide * 20 < self.list.len()
    }
}

/// The middle one of some times, of two the later.
pub(super) fn middle(times: impl IntoIterator<Item = Nanos>) -> Option<Nanos> {
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

fn annotated(steps: &PlacedSteps) -> Vec<ServerStep> {
    let mut list = Vec::new();
    for (index, ((_, summary), (host, device))) in
        steps.list.iter().zip(steps.host.iter().zip(&steps.device)).enumerate()
    {
        let (Some(batch), Some(device)) = (summary.batch, device) else { continue };
        let group = |group: types::StepGroup| Group {
            sequences: group.sequences,
            tokens: group.query_tokens.unwrap_or(group.sequences),
        };
        let (context, generation) = (group(batch.context), group(batch.generation));
        if context.sequences + generation.sequences > 0 {
            list.push(ServerStep { index: index as u64, host: *host, device: *device, context, generation });
        }
    }
    list.sort_by_key(|step| step.device.end);
    list
}

/// Passes that each end with the choice of tokens.
fn passes(steps: &PlacedSteps) -> Vec<ServerStep> {
    if steps.basis != StepBasis::TokenChoices {
        return Vec::new();
    }
    let rows = steps.host.iter().zip(&steps.device).enumerate();
    let known = rows.filter_map(|(index, (host, device))| Some((index as u64, *host, (*device)?)));
    let (context, generation) = Default::default();
    let step = |(index, host, device)| ServerStep { index, host, device, context, generation };
    let mut list: Vec<_> = known.map(step).collect();
    list.sort_by_key(|step| step.device.end);
    list
}

/// Ends of the calls in which a host waits for the device, in order.
fn waited(timeline: &Timeline) -> Vec<Nanos> {
    let waits = |name| cause_of_call(timeline.name(name)) == Some(IdleCause::Synchronising);
    let mut ends: Vec<_> = timeline.calls.iter().filter(|call| waits(call.name)).map(HostCall::end).collect();
    ends.sort_unstable();
    ends
}

/// When work starts that layers of a model do and nothing that prepares them, in order.
fn layers(timeline: &Timeline) -> Vec<Nanos> {
    let is_layer = |work: &&DeviceWork| {
        let family = family_of_work(work.kind, timeline.name(work.name));
        matches!(
            family,
            Family::Gemm | Family::Gemv | Family::Attention | Family::Convolution | Family::Experts | Family::Graph
        )
    };
    let mut starts: Vec<_> = timeline.work.iter().filter(is_layer).map(|work| work.start).collect();
    starts.sort_unstable();
    starts
}

/// A pass without the copies and small kernels that prepare it, behind which the device waits: it starts behind the longest pause before
/// its first layer and before a tenth of its work is done.
fn prepared(busy: &Spans, layers: &[Nanos], pass: Span) -> Span {
    let inside = busy.within(pass);
    let first = layers.get(layers.partition_point(|start| *start < pass.start)).copied().unwrap_or(pass.end);
    let (mut done, mut longest, mut start) = (Nanos::ZERO, Nanos::ZERO, pass.start);
    for (work, next) in inside.as_slice().iter().zip(inside.as_slice().iter().skip(1)) {
        done += work.length();
        if done.get() > inside.total().get() / 10 || next.start > first {
            break;
        }
        if next.start - work.end > longest {
            (longest, start) = (next.start - work.end, next.start);
        }
    }
    Span::new(start, pass.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_starts_behind_what_prepares_it_and_not_inside_its_layers() {
        let span = |start: i64, length: i64| Span::new(Nanos::new(start * 1_000), Nanos::new((start + length) * 1_000));
        // Copies, then the embedding, a first GEMM, a pause of 38 ms in front of its attention, and the rest.
        let busy = Spans::union([span(0, 5), span(20, 5), span(2_500, 10), span(2_520, 40), span(41_000, 3_000)]);
        let pass = span(0, 44_000);
        assert_eq!(prepared(&busy, &[Nanos::new(2_520_000)], pass).start, Nanos::new(2_500_000));
        // Without layers that are known, the longest pause before a tenth of the work is done.
        assert_eq!(prepared(&busy, &[], pass).start, Nanos::new(41_000_000));
    }
}
