//! Steps of a serving engine, by the ranges that announce them: `decode bs>=32` is every decode step of at least 32 requests.
//!
//! vLLM writes `execute_context_0(0)_generation_32(32)`, SGLang `step[DECODE bs=32 toks=32]`, others `decode[bs=32 tok=32]`.

use crate::number::number;

/// Which steps are wanted: those of a mode with so many requests, or tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    mode: Mode,
    by_tokens: bool,
    least: u32,
    most: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Prefill,
    Decode,
    Mixed,
}

/// What a range announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    mode: Mode,
    requests: Option<u32>,
    tokens: Option<u32>,
}

impl Mode {
    fn of(word: &[u8]) -> Option<Self> {
        let words: [(&[u8], Self); 4] = [
            (b"decode", Self::Decode),
            (b"prefill", Self::Prefill),
            (b"extend", Self::Prefill),
            (b"mixed", Self::Mixed),
        ];
        words.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, mode)| mode)
    }
}

impl Wanted {
    /// Reads `MODE SIZE>=NUMBER`, where the size is `bs` or `toks` and `<=` and `=` are others to compare by.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let space = text.iter().position(|byte| *byte == b' ')?;
        let (mode, size) = (Mode::of(text.get(..space)?)?, text.get(space + 1..)?);
        let (by_tokens, compared) = match size.strip_prefix(b"toks") {
            Some(compared) => (true, compared),
            None => (false, size.strip_prefix(b"bs")?),
        };
        let (least, most) = match compared {
            [b'>', b'=', rest @ ..] => (number(rest)?, u32::MAX),
            [b'<', b'=', rest @ ..] => (0, number(rest)?),
            [b'=', rest @ ..] => (number(rest)?, number(rest)?),
            _ => return None,
        };
        Some(Self { mode, by_tokens, least, most })
    }

    /// Whether a range announces such a step.
    pub(crate) fn is(self, name: &[u8]) -> bool {
        let Some(step) = Step::of(name).filter(|step| step.mode == self.mode) else { return false };
        let size = if self.by_tokens { step.tokens } else { step.requests };
        size.is_some_and(|size| (self.least..=self.most).contains(&size))
    }
}

impl Step {
    fn of(name: &[u8]) -> Option<Self> {
        if name.starts_with(b"execute_") {
            return Self::of_vllm(name);
        }
        let words =
            || name.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'=').filter(|word| !word.is_empty());
        let mode = words().take(2).find_map(Mode::of)?;
        let size = |key: &[u8]| words().find_map(|word| number(word.strip_prefix(key)?));
        let (requests, tokens) = (size(b"bs="), size(b"toks=").or_else(|| size(b"tok=")));
        Some(Self { mode, requests, tokens })
    }

    /// Requests and tokens of prompts, then of generation.
    fn of_vllm(name: &[u8]) -> Option<Self> {
        let (prompts, their_tokens) = group(name, b"context_")?;
        let (others, their_own) = group(name, b"generation_")?;
        let mode = match (prompts, others) {
            (0, 0) => return None,
            (0, _) => Mode::Decode,
            (_, 0) => Mode::Prefill,
            _ => Mode::Mixed,
        };
        let tokens = their_tokens.zip(their_own).and_then(|(one, other)| one.checked_add(other));
        Some(Self { mode, requests: prompts.checked_add(others), tokens })
    }
}

/// `KEY8(64)`: eight requests with 64 tokens; a newer form writes other things between the brackets.
fn group(name: &[u8], key: &[u8]) -> Option<(u32, Option<u32>)> {
    let at = name.windows(key.len()).position(|part| part == key)?;
    let rest = name.get(at + key.len()..)?;
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length = digits(rest);
    let requests = number(rest.get(..length)?)?;
    let inside = rest.get(length..)?.strip_prefix(b"(")?;
    let length = digits(inside);
    let tokens = if inside.get(length) == Some(&b')') { number(inside.get(..length)?) } else { None };
    Some((requests, tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(wanted: &str, name: &str) -> bool {
        Wanted::read(wanted.as_bytes()).unwrap().is(name.as_bytes())
    }

    #[test]
    fn steps_of_every_engine_are_understood() {
        for name in ["execute_context_0(0)_generation_32(32)", "step[DECODE bs=32 toks=32]", "decode[bs=32 tok=32]"] {
            assert!(is("decode bs>=32", name) && is("decode bs=32", name) && is("decode toks<=32", name), "{name}");
            assert!(!is("decode bs>=33", name) && !is("prefill bs>=1", name), "{name}");
        }
        for name in ["execute_context_2(512)_generation_0(0)", "step[EXTEND bs=2 toks=512]"] {
            assert!(is("prefill toks>=512", name) && is("prefill bs=2", name) && !is("decode bs>=1", name), "{name}");
        }
        assert!(is("mixed bs=5", "execute_context_1(64)_generation_4(4)"));
        // Only requests are known of the newer form.
        let detailed = "execute_7_context_0(sq0sk0sqsq0sqsk0)_generation_8(sq8sk900sqsq8sqsk900)";
        assert!(is("decode bs=8", detailed) && !is("decode toks>=1", detailed));
    }

    #[test]
    fn what_announces_no_step_is_none() {
        for name in
            ["", "decode_step", "execute_context_0(0)_generation_0(0)", "step[IDLE bs=0]", "execute_context_x", "bs=32"]
        {
            assert!(!is("decode bs>=0", name), "{name}");
        }
        for wanted in ["decode", "decode bs", "decode bs>32x", "decode bs>=", "run bs>=1", "decode size>=1", ""] {
            assert_eq!(Wanted::read(wanted.as_bytes()), None, "{wanted}");
        }
    }
}
