//! What a response has said so far.

use std::borrow::Cow;

use serde::Deserialize;
use types::{Nanos, RequestRecord};

/// What events have said beside their output.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reply {
    /// Whether `[DONE]` came.
    pub(crate) done: bool,
    /// Whether a choice said why it ended.
    pub(crate) finished: bool,
    /// Whether the last chunk of output has no text and a reason to finish: a token without text, or none.
    ends_empty: bool,
    /// What went wrong, as the server says, or what could not be read.
    pub(crate) error: Option<String>,
}

/// One event of a completion or of a chat.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Usage>,
    error: Option<serde_json::Value>,
}

/// One of the answers; a load asks for one.
#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

/// What a chat adds to its message. Reasoning has two names: vLLM renamed it to the second.
#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning: Option<Cow<'a, str>>,
}

/// Tokens as the server counted them.
#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

impl Choice<'_> {
    /// Whether it is output.
    ///
    /// `vllm bench serve` counts every event with a choice, because tokens may have no text: special ones, and those that end
    /// inside a character (`endpoint_request_func.py`). Two kinds of events are not tokens, and do not count here: the first of
    /// a chat, which has a role and no text, and a last one that has a reason to finish and no text field.
    fn is_output(&self) -> bool {
        let has_role = self.delta.as_ref().is_some_and(|delta| delta.role.is_some());
        if has_role { self.texts().any(|text| !text.is_empty()) } else { self.texts().next().is_some() }
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let text = self.text.as_ref().filter(|_| self.delta.is_none());
        let delta = self.delta.as_ref();
        let of_chat = delta.map(|delta| [&delta.content, &delta.reasoning_content, &delta.reasoning]);
        text.into_iter().chain(of_chat.into_iter().flatten().flatten()).map(|text| &**text)
    }
}

impl Reply {
    /// Reads one event that arrived `since_due`.
    pub(crate) fn add(&mut self, data: &[u8], since_due: Nanos, record: &mut RequestRecord) {
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return;
        }
        match serde_json::from_slice::<Event>(data) {
            Ok(event) => self.add_event(event, since_due, record),
            Err(reason) => {
                self.fail(format!("an event is not valid: {reason}: {}", start_of(&String::from_utf8_lossy(data))))
            }
        }
    }

    /// Reads one event.
    fn add_event(&mut self, event: Event<'_>, since_due: Nanos, record: &mut RequestRecord) {
        if let Some(error) = event.error {
            self.fail(format!("the server reports an error: {}", start_of(&error.to_string())));
        }
        if let Some(id) = event.id.filter(|id| !id.is_empty()) {
            record.id = Some(id.into_owned());
        }
        if let Some(usage) = event.usage {
            record.input_tokens = usage.prompt_tokens.or(record.input_tokens);
            record.output_tokens = usage.completion_tokens.or(record.output_tokens);
        }
        if let Some(choice) = event.choices.as_ref().and_then(|choices| choices.first()) {
            self.finished |= choice.finish_reason.is_some();
            if choice.is_output() {
                record.chunks_ns.push(since_due);
                let has_text = choice.texts().any(|text| !text.is_empty());
                self.ends_empty = !has_text && choice.finish_reason.is_some();
            }
        }
    }

    /// Drops a last chunk without text where the server counts fewer tokens than chunks: it only says why the output ends.
    pub(crate) fn end(&self, record: &mut RequestRecord) {
        let chunks = record.chunks_ns.len() as u64;
        if self.ends_empty && chunks > 1 && record.output_tokens.is_some_and(|tokens| tokens < chunks) {
            record.chunks_ns.pop();
        }
    }

    /// Keeps the first error.
    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }
}

/// The first 200 characters, on one line.
pub(crate) fn start_of(text: &str) -> String {
    text.trim().chars().take(200).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What these events leave, one nanosecond apart.
    fn read(events: &[&str]) -> (Reply, RequestRecord) {
        let (mut reply, mut record) = (Reply::default(), RequestRecord::default());
        let times = (1..).map(Nanos::new);
        events.iter().zip(times).for_each(|(event, time)| reply.add(event.as_bytes(), time, &mut record));
        reply.end(&mut record);
        (reply, record)
    }

    #[test]
    fn a_completion_of_vllm_is_counted_as_vllm_counts_it() {
        let (reply, record) = read(&[
            r#"{"id":"cmpl-1","choices":[{"index":0,"text":" a\u00e4","logprobs":null,"finish_reason":null}],"usage":null}"#,
            r#"{"id":"cmpl-1","choices":[{"index":0,"text":"","finish_reason":null}]}"#,
            r#"{"id":"cmpl-1","choices":[{"index":0,"text":" b","finish_reason":"length"}]}"#,
            r#"{"id":"cmpl-1","choices":[],"usage":{"prompt_tokens":7,"total_tokens":10,"completion_tokens":3}}"#,
            "[DONE]",
        ]);
        assert_eq!(reply, Reply { done: true, finished: true, ..Reply::default() });
        assert_eq!(record.chunks_ns, [1, 2, 3].map(Nanos::new));
        assert_eq!((record.input_tokens, record.output_tokens), (Some(7), Some(3)));
        assert_eq!(record.id.as_deref(), Some("cmpl-1"));
    }

    #[test]
    fn events_of_a_chat_that_are_no_tokens_do_not_count() {
        let (reply, record) = read(&[
            r#"{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"role":null,"content":null,"reasoning_content":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":""},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"role":"assistant","content":"b"}}]}"#,
            r#"{"choices":[{"delta":{"role":null,"content":null},"finish_reason":"stop"}]}"#,
        ]);
        assert_eq!(record.chunks_ns, [2, 3, 4, 5, 6].map(Nanos::new));
        assert_eq!((reply.done, reply.finished, record.output_tokens), (false, true, None));
    }

    #[test]
    fn an_empty_chunk_behind_all_tokens_is_no_output() {
        // As transformers serves: the last event only says why the output ends.
        let last = |tokens: u64| {
            format!(
                r#"{{"choices":[{{"text":"","finish_reason":"length"}}],"usage":{{"prompt_tokens":7,"completion_tokens":{tokens}}}}}"#
            )
        };
        let times = |tokens: u64| {
            let (first, last) = (r#"{"choices":[{"text":" a","finish_reason":null}]}"#, last(tokens));
            read(&[first, first, &last, "[DONE]"]).1.chunks_ns.len()
        };
        assert_eq!(times(2), 2);
        // The token that ends a text may have none.
        assert_eq!(times(3), 3);
    }

    #[test]
    fn errors_in_the_stream_are_kept() {
        let (reply, _) = read(&[r#"{"error":{"message":"out of memory","code":500}}"#, "{"]);
        let expected = r#"the server reports an error: {"message":"out of memory","code":500}"#;
        assert_eq!(reply.error.as_deref(), Some(expected));
        let (reply, record) = read(&["{\"choices\": 3}"]);
        assert!(reply.error.unwrap().starts_with("an event is not valid: invalid type: integer `3`"));
        assert_eq!(record, RequestRecord::default());
    }
}
