//! Loads that others wrote, and prompts: any bytes are read as a list of requests in time, or refused with what is wrong.

use load::replay::{csv, jsonl, lines, mooncake, sharegpt};
use load::{Arrivals, LoadError};

/// Tokens of an answer where a file has no number of its own.
const TOKENS: u32 = 16;

/// What must hold for any input; whether any of the readers took it.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let mut was_read = false;
    for replay in [mooncake(bytes), csv(bytes)] {
        was_read |= is_read(replay.map(|replay| {
            assert!(replay.requests > 0);
            if let Arrivals::At(times) = &replay.arrivals {
                assert!(times.is_sorted() && times.len() == replay.requests);
            }
        }));
    }
    was_read |= is_read(sharegpt(bytes, TOKENS));
    was_read |= is_read(jsonl(bytes, TOKENS));
    let _ = is_read(lines(bytes, TOKENS));
    was_read
}

fn is_read<T>(outcome: Result<T, LoadError>) -> bool {
    if let Err(error) = &outcome {
        assert!(!error.to_string().is_empty());
    }
    outcome.is_ok()
}
