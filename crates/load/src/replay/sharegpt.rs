//! Conversations of ShareGPT: a JSON list of `{"conversations": [{"from": "human", "value": "..."}, ...]}`.

use serde::Deserialize;

use super::{Place, listed};
use crate::{Ask, LoadError, Prompt, Prompts};

/// As errors call it.
const FORMAT: &str = "ShareGPT file";
/// What to do about another file.
const FIX: &str = "use a JSON list of `{\"conversations\": [{\"from\": \"human\", \"value\": \"...\"}]}`";
/// Tokens of three words, assumed: English text has about 4/3 tokens per word
/// (<https://help.openai.com/en/articles/4936856>).
const TOKENS_OF_THREE_WORDS: usize = 4;

/// One conversation.
#[derive(Deserialize)]
struct Conversation {
    #[serde(default)]
    conversations: Vec<Turn>,
}

/// What one side said.
#[derive(Deserialize)]
struct Turn {
    from: String,
    value: String,
}

/// Reads the first turn of every conversation that starts with a human. The output is as long as the reply, estimated from its
/// words, and at most `max_tokens`; without a reply it is `max_tokens`.
pub fn sharegpt(bytes: &[u8], max_tokens: u32) -> Result<Prompts, LoadError> {
    let wrong =
        |reason: serde_json::Error| Place { format: FORMAT, line: reason.line() }.wrong(reason.to_string(), FIX);
    let conversations: Vec<Conversation> = serde_json::from_slice(bytes).map_err(wrong)?;
    let asks = conversations.into_iter().filter_map(|conversation| ask(conversation, max_tokens));
    listed(FORMAT, asks.collect())
}

/// What a conversation asks first.
fn ask(conversation: Conversation, most: u32) -> Option<Ask> {
    let mut turns = conversation.conversations.into_iter();
    let first = turns.next().filter(|turn| matches!(turn.from.as_str(), "human" | "user"))?;
    let text = Some(first.value).filter(|text| !text.trim().is_empty())?;
    let max_tokens = turns.next().map_or(most, |reply| tokens(&reply.value).clamp(1, most.max(1)));
    Some(Ask { prompt: Prompt::Chat { text, images: Vec::new() }, max_tokens })
}

/// About how many tokens a text has.
fn tokens(text: &str) -> u32 {
    let tokens = (text.split_whitespace().count() * TOKENS_OF_THREE_WORDS).div_ceil(3);
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_human_turn_is_asked() {
        let text = r#"[
            {"id": "a", "conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "one two three"}]},
            {"id": "b", "conversations": [{"from": "gpt", "value": "goes on"}, {"from": "human", "value": "no"}]},
            {"id": "c", "conversations": []},
            {"id": "d", "conversations": [{"from": "human", "value": "count"}, {"from": "gpt", "value": "1 2 3 4 5 6 7 8 9"}]},
            {"id": "e", "conversations": [{"from": "user", "value": "alone"}]}
        ]"#;
        let ask = |text: &str, max_tokens| Ask {
            prompt: Prompt::Chat { text: text.to_owned(), images: Vec::new() },
            max_tokens,
        };
        let expected = Prompts::Listed(vec![ask("hi", 4), ask("count", 10), ask("alone", 10)]);
        assert_eq!(sharegpt(text.as_bytes(), 10).unwrap(), expected);
    }

    #[test]
    fn what_is_no_list_of_conversations_is_rejected() {
        let error = |text: &str| sharegpt(text.as_bytes(), 1).unwrap_err().to_string();
        assert!(error("[\n{\"conversations\": 3}]").starts_with("line 2 of the ShareGPT file: invalid type"));
        assert!(error("").starts_with("line 1 of the ShareGPT file: EOF"));
        assert_eq!(error("[]"), "the ShareGPT file contains no requests");
    }
}
