//! Prompts as text: one per line, or one JSON object per line with `prompt` and optionally `output_tokens`.

use serde::Deserialize;

use super::{listed, places};
use crate::{Ask, LoadError, Prompt, Prompts};

/// As errors call them.
const LINES: &str = "prompt file";
const JSONL: &str = "JSONL prompt file";
/// What to do about a line that is not one.
const FIX: &str = "write `{\"prompt\": \"...\"}` on each line, optionally with `\"output_tokens\": N`";

/// One prompt, in the fields of vLLM's custom dataset.
#[derive(Deserialize)]
struct Line {
    prompt: String,
    output_tokens: Option<f64>,
}

/// Reads a prompt from every line that is not blank; each may have `max_tokens` of output.
pub fn lines(bytes: &[u8], max_tokens: u32) -> Result<Prompts, LoadError> {
    let asks = places(LINES, bytes).map(|(place, text)| {
        let text = str::from_utf8(text).map_err(|_| place.wrong("not UTF-8", "save the file as UTF-8"))?;
        Ok(Ask { prompt: Prompt::Text(text.to_owned()), max_tokens })
    });
    listed(LINES, asks.collect::<Result<_, LoadError>>()?)
}

/// Reads a prompt from every object; one without a length of its own may have `max_tokens` of output.
pub fn jsonl(bytes: &[u8], max_tokens: u32) -> Result<Prompts, LoadError> {
    let asks = places(JSONL, bytes).map(|(place, text)| {
        let line: Line = serde_json::from_slice(text).map_err(|reason| place.wrong(reason.to_string(), FIX))?;
        let own = line.output_tokens.map(|value| place.tokens("output_tokens", value)).transpose()?;
        Ok(Ask { prompt: Prompt::Text(line.prompt), max_tokens: own.unwrap_or(max_tokens) })
    });
    listed(JSONL, asks.collect::<Result<_, LoadError>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_prompt() {
        let read = lines("one\r\n\n zwei ü".as_bytes(), 5).unwrap();
        let expected = ["one", "zwei ü"].map(|text| Ask { prompt: Prompt::Text(text.to_owned()), max_tokens: 5 });
        assert_eq!(read, Prompts::Listed(expected.to_vec()));
        assert_eq!(lines(b"a\n\xff", 5).unwrap_err().to_string(), "line 2 of the prompt file: not UTF-8");
    }

    #[test]
    fn objects_may_say_how_long_their_output_is() {
        let read = jsonl(b"{\"prompt\": \"a\", \"output_tokens\": 7}\n{\"prompt\": \"b\"}", 5).unwrap();
        let ask = |text: &str, max_tokens| Ask { prompt: Prompt::Text(text.to_owned()), max_tokens };
        assert_eq!(read, Prompts::Listed(vec![ask("a", 7), ask("b", 5)]));
        let error = jsonl(b"{\"prompt\": \"a\", \"output_tokens\": -7}", 5).unwrap_err().to_string();
        assert_eq!(error, "line 1 of the JSONL prompt file: `output_tokens` is -7");
        assert!(jsonl(b"{}", 5).unwrap_err().to_string().contains("missing field `prompt`"));
    }
}
