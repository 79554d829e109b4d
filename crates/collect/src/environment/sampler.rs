//! GPUs while something runs: utilisation, memory and power, asked of the driver at intervals.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use types::{Bytes, DeviceId, DeviceUse};

use super::gpu::{self, Answer};
use crate::tool::Places;

/// Time between two questions. The driver itself averages over a sixth of a second or more, so that asking more often
/// shows nothing new.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long a driver may take to answer at all before what is measured starts without it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks in a thread of its own, which is there before what is measured starts, so that it takes nothing from it.
#[derive(Debug)]
pub struct GpuSampler(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The driver has answered, or there is none.
    is_ready: bool,
    /// How often somebody began to watch.
    watches: u64,
    /// What was seen since; absent while nobody watches.
    found: Option<Vec<Sums>>,
    is_over: bool,
}

/// Sums over the answers of one device.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sums {
    samples: u64,
    busy: Series,
    memory: u64,
    power: Series,
    /// Lowest and highest clock while a kernel ran.
    clocks: Option<[u32; 2]>,
    throttle_reasons: BTreeSet<String>,
    /// Processes that neither are this one nor descend from it; absent where the driver does not name any that this
    /// system knows.
    others: Option<BTreeSet<u32>>,
    /// Whether this process or one that descends from it was there.
    is_ours: bool,
}

/// Sum and largest of some numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Series {
    count: u64,
    sum: f64,
    max: f64,
}

impl GpuSampler {
    /// Finds the driver. A machine without GPUs answers nothing, and costs nothing further.
    pub fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let (asking, folders) = (Arc::clone(&shared), Places::of_this_machine().libraries);
        // Not joined: a driver that hangs must not keep the run from ending.
        std::thread::spawn(move || asking.ask(&folders));
        let waiting = shared.changed.wait_timeout_while(shared.state(), PATIENCE, |state| !state.is_ready);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
        Self(shared)
    }

    /// Begins to ask.
    pub fn watch(&self) {
        let mut state = self.0.state();
        state.watches += 1;
        state.found = Some(Vec::new());
        self.0.changed.notify_all();
    }

    /// Ends the questions and gives back what was seen, device by device.
    pub fn finish(&self) -> Vec<DeviceUse> {
        let found = self.0.state().found.take().unwrap_or_default();
        (0u32..).zip(&found).map(|(index, sums)| sums.summary(DeviceId::cuda(index))).collect()
    }
}

impl Drop for GpuSampler {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, folders: &[PathBuf]) {
        let questions = gpu::questions(folders);
        self.state().is_ready = true;
        self.changed.notify_all();
        let Some(mut ask) = questions else { return };
        loop {
            let idle = |state: &mut State| state.found.is_none() && !state.is_over;
            let state = self.changed.wait_while(self.state(), idle).unwrap_or_else(PoisonError::into_inner);
            let watch = state.watches;
            if state.is_over {
                return;
            }
            drop(state);
            let answers = ask();
            let mut state = self.state();
            let is_same = watch == state.watches;
            if let Some(found) = state.found.as_mut().filter(|_| is_same) {
                found.resize(found.len().max(answers.len()), Sums::default());
                found.iter_mut().zip(answers).for_each(|(sums, answer)| sums.take(answer));
            }
            let same = |state: &mut State| state.watches == watch && !state.is_over;
            drop(self.changed.wait_timeout_while(state, INTERVAL, same));
        }
    }
}

impl Sums {
    fn take(&mut self, answer: Answer) {
        self.samples += 1;
        answer.utilisation.into_iter().for_each(|share| self.busy.take(share));
        answer.power_watts.into_iter().for_each(|watts| self.power.take(watts));
        self.memory = self.memory.max(answer.memory_used.unwrap_or_default());
        if answer.utilisation.is_some_and(|share| share > 0.0) {
            let known = self.clocks;
            let widened =
                answer.sm_clock_mhz.map(|now| known.map_or([now; 2], |[low, high]| [low.min(now), high.max(now)]));
            self.clocks = widened.or(known);
            self.throttle_reasons.extend(answer.throttle_reasons);
        }
        for process in answer.processes.into_iter().flatten() {
            // A driver may name processes by the numbers of another namespace; what is not here says nothing.
            if let Some(is_ours) = descends_from_this(process) {
                let others = self.others.get_or_insert_default();
                self.is_ours |= is_ours;
                if !is_ours {
                    others.insert(process);
                }
            }
        }
    }

    fn summary(&self, device: DeviceId) -> DeviceUse {
        // What others do on a device that nothing of ours runs on is their business.
        let concerns_us = self.is_ours || self.others.is_none();
        DeviceUse {
            device,
            samples: self.samples,
            utilisation_mean: self.busy.mean(),
            utilisation_max: (self.busy.count > 0).then_some(self.busy.max),
            memory_max_bytes: (self.memory > 0).then(|| Bytes::new(self.memory)),
            power_mean_watts: self.power.mean(),
            sm_clock_min_mhz: self.clocks.map(|[low, _]| low),
            sm_clock_max_mhz: self.clocks.map(|[_, high]| high),
            throttle_reasons: self.throttle_reasons.iter().filter(|_| concerns_us).cloned().collect(),
            other_processes: self
                .others
                .as_ref()
                .map(|others| if concerns_us { u32::try_from(others.len()).unwrap_or(u32::MAX) } else { 0 }),
        }
    }
}

/// Whether a process is this one or descends from it; absent where there is none.
fn descends_from_this(process: u32) -> Option<bool> {
    let us = std::process::id();
    let mut at = process;
    while at != us {
        let stat = std::fs::read_to_string(format!("/proc/{at}/stat")).ok()?;
        // The parent is the fourth field; the name, the second, may hold spaces.
        match stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()? {
            0 => return Some(false),
            parent => at = parent,
        }
    }
    Some(true)
}

impl Series {
    fn take(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.max = self.max.max(value);
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_over_the_answers_there_were() {
        let mut sums = Sums::default();
        let at = |mhz| Answer { sm_clock_mhz: Some(mhz), ..Answer::default() };
        sums.take(Answer { utilisation: Some(0.5), memory_used: Some(7), ..at(1980) });
        let reasons = vec!["sw_power_cap".to_owned()];
        let processes = Some(vec![1, std::process::id()]);
        sums.take(Answer {
            utilisation: Some(1.0),
            memory_used: Some(9),
            throttle_reasons: reasons,
            processes,
            ..at(1200)
        });
        sums.take(Answer::default());
        let found = sums.summary(DeviceId::cuda(0));
        assert_eq!((found.samples, found.utilisation_mean, found.utilisation_max), (3, Some(0.75), Some(1.0)));
        assert_eq!((found.memory_max_bytes, found.power_mean_watts), (Some(Bytes::new(9)), None));
        assert_eq!((found.sm_clock_min_mhz, found.sm_clock_max_mhz), (Some(1200), Some(1980)));
        assert_eq!((found.throttle_reasons, found.other_processes), (vec!["sw_power_cap".to_owned()], Some(1)));
        // Others on a device that we do not use do not disturb us.
        let mut elsewhere = Sums::default();
        elsewhere.take(Answer { processes: Some(vec![1]), ..Answer::default() });
        assert_eq!(elsewhere.summary(DeviceId::cuda(1)).other_processes, Some(0));
        assert_eq!(Sums::default().summary(DeviceId::cuda(1)).utilisation_mean, None);
    }
}
