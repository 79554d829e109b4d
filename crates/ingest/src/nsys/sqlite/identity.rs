//! Processes, threads and streams: the packed numbers of an export as rows of a timeline.

use std::collections::HashMap;
use std::hash::Hash;

use types::timeline::{DeviceQueue, HostThread, QueueId, ThreadId};

/// Number of the process in a packed process or thread number: bits 24 to 47, above the thread, below the machine.
pub(crate) fn process(packed: i64) -> u32 {
    ((packed >> 24) & 0xff_ffff) as u32
}

/// Distinct keys in the order they were seen. Neighbouring rows mostly have the same, which costs no look-up.
#[derive(Debug)]
struct KeyTable<K> {
    places: HashMap<K, u32>,
    last: Option<(K, u32)>,
}

impl<K: Copy + Eq + Hash> KeyTable<K> {
    fn new() -> Self {
        Self { places: HashMap::new(), last: None }
    }

    /// The place of a key, and whether it is new.
    #[inline]
    fn place(&mut self, key: K) -> (u32, bool) {
        if let Some((last, place)) = self.last
            && last == key
        {
            return (place, false);
        }
        let next = self.places.len() as u32;
        let place = *self.places.entry(key).or_insert(next);
        self.last = Some((key, place));
        (place, place == next)
    }
}

/// Threads of a timeline.
#[derive(Debug)]
pub(crate) struct Threads {
    distinct: KeyTable<Option<i64>>,
    pub(crate) threads: Vec<HostThread>,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self { distinct: KeyTable::new(), threads: Vec::new() }
    }

    /// The thread with that packed number.
    #[inline]
    pub(crate) fn place(&mut self, packed: Option<i64>) -> ThreadId {
        let (place, new) = self.distinct.place(packed);
        if new {
            let thread = packed.map(|packed| (packed & 0xff_ffff) as u64);
            self.threads.push(HostThread { process: packed.map(process), rank: None, thread });
        }
        ThreadId(place)
    }
}

/// Where device work ran, as a row says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stream {
    pub(crate) device: u32,
    pub(crate) context: Option<u32>,
    pub(crate) stream: Option<u32>,
    /// Packed number of the process.
    pub(crate) process: Option<i64>,
}

/// Queues of a timeline.
#[derive(Debug)]
pub(crate) struct Queues {
    distinct: KeyTable<Stream>,
    /// The machine's number of a device by process and the process's own number.
    numbers: HashMap<(u32, u32), u32>,
    pub(crate) queues: Vec<DeviceQueue>,
}

impl Queues {
    pub(crate) fn new(numbers: HashMap<(u32, u32), u32>) -> Self {
        Self { distinct: KeyTable::new(), numbers, queues: Vec::new() }
    }

    /// The queue with that identity. Processes that see only some of the devices all start to count at zero, so the
    /// machine's own number is taken where the export has it.
    #[inline]
    pub(crate) fn place(&mut self, key: Stream) -> QueueId {
        let (place, new) = self.distinct.place(key);
        if new {
            let process = key.process.map(process);
            let device = process.and_then(|process| self.numbers.get(&(process, key.device)).copied());
            let Stream { context, stream, .. } = key;
            let device = device.unwrap_or(key.device);
            self.queues.push(DeviceQueue { process, rank: None, device, context, stream });
        }
        QueueId(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_number_is_machine_process_and_thread() {
        assert_eq!(process(1 << 48 | 0x03bf << 24 | 0x04c2), 0x03bf);
        let mut threads = Threads::new();
        assert_eq!(threads.place(Some(281_491_066_061_759)), ThreadId(0));
        assert_eq!(threads.threads[0], HostThread { process: Some(959), rank: None, thread: Some(959) });
    }

    #[test]
    fn a_thread_is_listed_once() {
        let mut threads = Threads::new();
        let places = [Some(1), Some(2), Some(1), None, None, Some(2)].map(|packed| threads.place(packed).0);
        assert_eq!(places, [0, 1, 0, 2, 2, 1]);
        assert_eq!(threads.threads.len(), 3);
    }

    #[test]
    fn two_processes_that_each_count_from_zero_run_on_two_devices() {
        let mut queues = Queues::new(HashMap::from([((10, 0), 4), ((11, 0), 5)]));
        for process in [10_i64, 11, 12] {
            queues.place(Stream { device: 0, context: Some(1), stream: Some(7), process: Some(process << 24) });
        }
        let devices: Vec<_> = queues.queues.iter().map(|queue| (queue.process, queue.device)).collect();
        assert_eq!(devices, [(Some(10), 4), (Some(11), 5), (Some(12), 0)]);
    }
}
