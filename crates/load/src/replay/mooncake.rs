//! Traces of Mooncake: one JSON object per line, `timestamp` in milliseconds
//! (<https://github.com/kvcache-ai/Mooncake/tree/main/FAST25-release>).

use serde::Deserialize;

use super::{Replay, places, replay};
use crate::prompts::BLOCK;
use crate::{Ask, LoadError, Prompt};

/// As errors call it.
const FORMAT: &str = "Mooncake trace";
/// What to do about a line that is not one.
const FIX: &str =
    "write `{\"timestamp\": 0, \"input_length\": 512, \"output_length\": 16, \"hash_ids\": [0]}` on each line";

/// One request. Numbers are floating-point, so that wrong ones can be named.
#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    input_length: f64,
    output_length: f64,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

/// Reads a trace. Requests are sorted by time.
pub fn mooncake(bytes: &[u8]) -> Result<Replay, LoadError> {
    let requests = places(FORMAT, bytes).map(|(place, text)| {
        let line: Line = serde_json::from_slice(text).map_err(|reason| place.wrong(reason.to_string(), FIX))?;
        let length = place.tokens("input_length", line.input_length)?;
        let max_tokens = place.tokens("output_length", line.output_length)?;
        let time = place.time("timestamp", line.timestamp, 1e6)?;
        Ok((time, Ask { prompt: prompt(line.hash_ids, length), max_tokens }))
    });
    replay(FORMAT, requests.collect::<Result<_, LoadError>>()?)
}

/// A prompt without the blocks that it has no room for.
fn prompt(mut hashes: Vec<u64>, length: u32) -> Prompt {
    hashes.truncate((length as usize).div_ceil(BLOCK));
    if hashes.is_empty() { Prompt::Random(length) } else { Prompt::Blocks { hashes, length } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, Prompts};
    use types::{Failure, Nanos};

    #[test]
    fn requests_are_sorted_and_start_at_the_first() {
        let text = br#"{"timestamp": 3500, "input_length": 600, "output_length": 52, "hash_ids": [46, 47, 48]}

            {"timestamp": 500, "input_length": 7, "output_length": 1}"#;
        let read = mooncake(text).unwrap();
        assert_eq!(read.arrivals, Arrivals::At(vec![Nanos::ZERO, Nanos::new(3_000_000_000)]));
        let blocks = Prompt::Blocks { hashes: vec![46, 47], length: 600 };
        let expected =
            [Ask { prompt: Prompt::Random(7), max_tokens: 1 }, Ask { prompt: blocks, max_tokens: 52 }].to_vec();
        assert_eq!((read.prompts, read.requests), (Prompts::Listed(expected), 2));
    }

    #[test]
    fn errors_name_the_line_and_the_fix() {
        let error = |line: &str| mooncake(format!("\n{line}").as_bytes()).unwrap_err();
        let wrong = error(r#"{"timestamp": 0, "input_length": -5, "output_length": 1}"#);
        assert_eq!(wrong.to_string(), "line 2 of the Mooncake trace: `input_length` is -5");
        assert_eq!(wrong.hint().unwrap(), "use a whole number of tokens from 1 to 16777216");
        let problem = |line| error(line).to_string();
        assert!(
            problem(r#"{"timestamp": 0, "input_length": 1e18, "output_length": 1}"#).contains("`input_length` is 1000")
        );
        assert!(
            problem(r#"{"timestamp": 0, "input_length": 1, "output_length": 1.5}"#).contains("`output_length` is 1.5")
        );
        assert!(problem(r#"{"timestamp": -1, "input_length": 1, "output_length": 1}"#).contains("`timestamp` is -1"));
        assert!(problem(r#"{"timestamp": 0, "input_length": 1}"#).contains("missing field `output_length`"));
        assert_eq!(mooncake(b" \n").unwrap_err().to_string(), "the Mooncake trace contains no requests");
    }
}
