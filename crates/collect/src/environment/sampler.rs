//! GPUs while something runs: utilisation, memory and power, asked of the driver at intervals.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use types::{Bytes, DeviceId, DeviceUse};

use super::gpu::{self, Answer};
use crate::tool::Places;

/// Time between two questions. The driver itself averages over a sixth of a second or more, so that asking more often
/// shows nothing new.
const INTERVAL: Duration = Duration::from_millis(100);

/// Asks in a thread of its own until it is finished.
#[derive(Debug)]
pub struct GpuSampler {
    stop: Arc<AtomicBool>,
    found: Arc<Mutex<Vec<Sums>>>,
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
    /// Starts to ask. A machine without GPUs answers nothing, and costs nothing further.
    pub fn start() -> Self {
        let sampler = Self { stop: Arc::default(), found: Arc::default() };
        let (stop, found) = (Arc::clone(&sampler.stop), Arc::clone(&sampler.found));
        let folders: Vec<PathBuf> = Places::of_this_machine().libraries;
        // Not joined: a driver that hangs must not keep the run from ending.
        std::thread::spawn(move || {
            let Some(mut ask) = gpu::questions(&folders) else { return };
            while !stop.load(Ordering::Relaxed) {
                let answers = ask();
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                let devices = found.len().max(answers.len());
                found.resize(devices, Sums::default());
                found.iter_mut().zip(answers).for_each(|(sums, answer)| sums.take(answer));
                drop(found);
                std::thread::sleep(INTERVAL);
            }
        });
        sampler
    }

    /// Ends the questions and gives back what was seen, device by device.
    pub fn finish(self) -> Vec<DeviceUse> {
        self.stop.store(true, Ordering::Relaxed);
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        (0u32..).zip(found.iter()).map(|(index, sums)| sums.summary(DeviceId::cuda(index))).collect()
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
