//! The threads that share out the work of an operation.

use rayon::{ThreadPool, ThreadPoolBuilder};

/// So many threads of their own, in place of those that operations use otherwise.
#[derive(Debug)]
pub struct Threads(ThreadPool);

impl Threads {
    /// Starts them; why not, where the system refuses.
    pub fn start(count: usize) -> Result<Self, String> {
        ThreadPoolBuilder::new().num_threads(count).build().map(Self).map_err(|error| error.to_string())
    }

    /// Runs something on them.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.install(work)
    }

    /// How many operations use otherwise.
    pub fn usual() -> usize {
        wanted()
    }
}

/// Makes the calling thread one of those that compute, unless they are at work already.
///
/// A thread outside hands every operation over and sleeps until it is done, which takes longer than many operations of a
/// decode step: 8 microseconds were saved on each by this. With one thread there is nothing to share out, and another
/// thread's work would wait for this one for ever.
pub(crate) fn join() {
    let threads = wanted();
    if threads > 1 {
        // Fails where they are at work: then operations are handed over, and everything else is the same.
        let _ = ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build_global();
    }
}

/// As many as there would be anyway: what the environment says, else one for each processor.
fn wanted() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|count| count.parse().ok()).filter(|count| *count > 0);
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    #[test]
    fn work_runs_on_as_many_threads_as_were_started() {
        let threads = Threads::start(3).unwrap();
        assert_eq!(threads.run(rayon::current_num_threads), 3);
        assert_eq!(threads.run(|| (0..100_000u64).into_par_iter().sum::<u64>()), 4_999_950_000);
    }

    #[test]
    fn work_is_shared_from_any_thread_after_one_has_joined() {
        join();
        join();
        let sum = || (0..100_000u64).into_par_iter().sum::<u64>();
        assert_eq!(sum(), 4_999_950_000);
        assert_eq!(std::thread::spawn(sum).join().unwrap(), 4_999_950_000);
    }
}
