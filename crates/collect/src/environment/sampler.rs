//! GPUs while something runs: utilisation, memory and power, asked of the driver at intervals.

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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    samples: u64,
    busy: Series,
    memory: u64,
    power: Series,
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
    }

    fn summary(&self, device: DeviceId) -> DeviceUse {
        DeviceUse {
            device,
            samples: self.samples,
            utilisation_mean: self.busy.mean(),
            utilisation_max: (self.busy.count > 0).then_some(self.busy.max),
            memory_max_bytes: (self.memory > 0).then(|| Bytes::new(self.memory)),
            power_mean_watts: self.power.mean(),
        }
    }
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
        sums.take(Answer { utilisation: Some(0.5), memory_used: Some(7), power_watts: None });
        sums.take(Answer { utilisation: Some(1.0), memory_used: Some(9), power_watts: None });
        sums.take(Answer::default());
        let found = sums.summary(DeviceId::cuda(0));
        assert_eq!((found.samples, found.utilisation_mean, found.utilisation_max), (3, Some(0.75), Some(1.0)));
        assert_eq!((found.memory_max_bytes, found.power_mean_watts), (Some(Bytes::new(9)), None));
        assert_eq!(Sums::default().summary(DeviceId::cuda(1)).utilisation_mean, None);
    }
}
