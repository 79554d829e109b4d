//! What is usual in a trace: from a launch to its start, between two pieces of work of a queue, from the end of work to the
//! return of who waited for it.

use types::Nanos;
use types::timeline::Timeline;

use super::node::CallNode;
use super::queues::Queues;

/// From the start of a launch to the start of its work, where a trace has no launch into an idle queue; a few microseconds on
/// every device of the hardware catalogue.
const USUAL_LAUNCH: Nanos = Nanos::new(10_000);
/// Between two kernels of a queue that never runs dry, where a trace has none.
const USUAL_FOLLOW: Nanos = Nanos::new(1_500);
/// Longer than this, a piece of work did not start late because of its launch or of the work before it.
pub(super) const UNEXPLAINED: Nanos = Nanos::new(100_000);

/// Work that starts this soon after other work may have waited for it; later, something else held it back.
pub(super) const SOON: Nanos = Nanos::new(20_000);

/// Usual latencies of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Latencies {
    /// From the start of a launch to the start of its work, in an idle queue.
    pub(crate) launch: Nanos,
    /// From the end of work to the start of the next in its queue, which had been launched before.
    pub(crate) follow: Nanos,
}

impl Latencies {
    pub(super) fn new(timeline: &Timeline, queues: &Queues, calls: &[CallNode], launched: &[Option<u32>]) -> Self {
        let (mut launches, mut follows, mut shortest) = (Vec::new(), Vec::new(), None::<Nanos>);
        for rows in &queues.rows {
            let mut reached: Option<Nanos> = None;
            for row in rows {
                let work = &timeline.work[*row as usize];
                let call = launched[*row as usize].map(|call| calls[call as usize].span);
                if let Some(call) = call.filter(|call| work.start >= call.start) {
                    let lag = work.start - call.start;
                    shortest = Some(shortest.map_or(lag, |shortest| shortest.min(lag)));
                    match reached {
                        Some(reached) if call.end > reached => {
                            launches.extend(Some(lag).filter(|lag| call.start >= reached && *lag <= UNEXPLAINED));
                        }
                        Some(reached) => {
                            let lag = work.start - reached;
                            follows.extend(Some(lag).filter(|lag| (Nanos::ZERO..=SOON).contains(lag)));
                        }
                        None => {}
                    }
                }
                reached = Some(reached.map_or(work.end(), |reached| reached.max(work.end())));
            }
        }
        let launch = middle(&mut launches).unwrap_or(USUAL_LAUNCH).min(shortest.map_or(UNEXPLAINED, |shortest| {
            // Without an idle queue every lag contains a wait, so that the shortest is the nearest to the latency.
            if launches.is_empty() { shortest } else { UNEXPLAINED }
        }));
        Self { launch, follow: middle(&mut follows).unwrap_or(USUAL_FOLLOW) }
    }
}

fn middle(times: &mut [Nanos]) -> Option<Nanos> {
    let middle = times.len().checked_sub(1)? / 2;
    Some(*times.select_nth_unstable(middle).1)
}
