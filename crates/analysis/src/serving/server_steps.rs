//! Steps of a server on the clock of its trace, with the sequences and tokens that the engine annotates.

use types::Nanos;

use crate::evidence::PlacedTimeline;
use crate::steps::{PlacedSteps, placed_steps};
use crate::time::{Span, Spans};

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
}

impl ServerSteps {
    /// Steps of the first timeline whose engine says what each step processes, and its place.
    pub(super) fn of(timelines: &[PlacedTimeline<'_>]) -> Option<(Self, usize)> {
        timelines.iter().enumerate().find_map(|(place, placed)| {
            let list = annotated(&placed_steps(placed.timeline, placed.attribution)?);
            let busy = Spans::union(placed.timeline.work.iter().map(|work| Span::new(work.start, work.end())));
            (!list.is_empty()).then_some((Self { list, busy }, place))
        })
    }

    /// When the last one ends.
    pub(super) fn end(&self) -> Nanos {
        self.list.last().map_or(Nanos::ZERO, |step| step.device.end)
    }

    /// When the output of a step leaves the engine: engines that schedule ahead launch the next step first.
    pub(super) fn emitted(&self, place: usize) -> Nanos {
        let end = self.list[place].device.end;
        match self.list.get(place + 1).map(|next| next.host) {
            Some(next) if next.start - end <= SOON => end.max(next.end),
            _ => end,
        }
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
