//! How many connections the process may have open.

use crate::LoadError;

/// Files that are not connections of the load: standard streams, event queues, what the caller has open.
const OTHERS: u64 = 64;
/// What is set where less would do, because an open loop has as many requests in flight as the server is slow. No more than that:
/// programs that this process starts inherit the limit, and some close every file below it.
const USUAL: u64 = 65_536;

/// Raises the limit of this process as far as it may, and says where that is too little for so many requests at once.
pub(crate) fn allow(concurrency: usize) -> Result<(), LoadError> {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limits` is valid for writing.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) } != 0 {
        return Ok(());
    }
    if let Some(limit) = raised(concurrency, limits.rlim_cur, limits.rlim_max)? {
        limits.rlim_cur = limit;
        // SAFETY: `limits` is valid for reading. Where the system refuses, single requests fail with its reason.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) };
    }
    Ok(())
}

/// The limit to set, where the current one is not enough.
fn raised(concurrency: usize, current: u64, most: u64) -> Result<Option<u64>, LoadError> {
    let needed = (concurrency as u64).saturating_add(OTHERS);
    if most < needed {
        return Err(LoadError::OpenFiles { concurrency, limit: most });
    }
    let wanted = most.min(needed.max(USUAL));
    Ok((current < wanted).then_some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_usual_or_needed() {
        assert_eq!(raised(10, 1024, 1 << 20).unwrap(), Some(USUAL));
        assert_eq!(raised(100_000, 1024, 1 << 20).unwrap(), Some(100_064));
        assert_eq!(raised(10, 1024, 4096).unwrap(), Some(4096));
        assert_eq!(raised(10, USUAL, 1 << 20).unwrap(), None);
        assert!(allow(1).is_ok());
    }

    #[test]
    fn more_requests_than_files_are_rejected() {
        let error = raised(5000, 1024, 4096).unwrap_err().to_string();
        assert_eq!(error, "5000 concurrent requests exceed the limit of 4096 open files");
    }
}
