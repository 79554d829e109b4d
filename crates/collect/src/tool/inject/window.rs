//! Which parts of a program our collector records.

use regex::bytes::Regex;
use types::{Exit, Failure};

/// Parts to collect: ranges (`prefill,decode_step:8..16`), steps of a serving engine (`decode bs>=32`), time (`5s..10s`), or what
/// the program delimits by the CUDA profiler's functions (`cudaProfilerApi`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window(String);

/// Why a text is no window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid window: {reason}")]
pub struct WindowError {
    text: String,
    reason: &'static str,
}

impl Failure for WindowError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        let step = "list ranges, each with an optional span of instances (prefill,decode_step:8..16), steps \
                    (decode bs>=32), seconds (5s..10s) or cudaProfilerApi";
        Some(step.to_owned())
    }
}

/// Forms of a part, of which it has the first that it looks like: how it then has to be, and what that is called. Where a form has two
/// numbers, they increase. The limits are those of the library, which has fixed room.
const FORMS: [[&str; 3]; 4] = [
    [r"s\.\..*s$", r"^(\d{1,6})s\.\.(\d{1,6})s$", "seconds must be FROMs..TOs, whole, increasing and below 1,000,000"],
    [
        "^(?:decode|prefill|mixed) .*=",
        r"^\w+ (?:bs|toks)(?:>=|<=|=)\d{1,9}$",
        "steps must be decode, prefill or mixed, then bs or toks, then >=, <= or = and a number",
    ],
    [r":[\d.][^:]*$", r"^.{1,64}:(\d{1,9})(?:\.\.(\d{1,9}))?$", "instances must be FROM..TO, with TO excluded"],
    ["", "^.{1,64}$", "a name must have 1 to 64 bytes"],
];

impl Window {
    /// Reads a list of parts.
    pub fn read(text: &str) -> Result<Self, WindowError> {
        let wrong = |reason| WindowError { text: text.to_owned(), reason };
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 8 {
            return Err(wrong("it has more than 8 parts"));
        }
        let of_bytes = |pattern: &str| Regex::new(&format!("(?s-u){pattern}")).ok();
        for part in parts.into_iter().map(str::as_bytes) {
            let form = FORMS.iter().find(|[like, ..]| of_bytes(like).is_some_and(|like| like.is_match(part)));
            let Some([_, exactly, reason]) = form else { continue };
            let found = of_bytes(exactly).and_then(|exactly| exactly.captures(part)).ok_or_else(|| wrong(reason))?;
            let end = |place| std::str::from_utf8(found.get(place)?.as_bytes()).ok()?.parse::<u32>().ok();
            if end(1).zip(end(2)).is_some_and(|(from, to)| from >= to) {
                return Err(wrong(reason));
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_checked_before_anything_runs() {
        let parts = [
            "cudaProfilerApi",
            "5s..10s",
            "decode bs>=32",
            "prefill toks<=512,mixed bs=4",
            "my range",
            "run bs>=1",
            "forward pass bs=4:0..8",
        ];
        for good in
            ["prefill", "decode_step:8..16", "cub::DeviceScan", "prefill,decode_step:0", "a:b"].into_iter().chain(parts)
        {
            assert_eq!(Window::read(good).unwrap().as_str(), good);
        }
        for bad in ["5s..5s", "s..s", "5s..99999999s", "decode bs>32=", "decode bs>=x", "decode bs>=+3", "1s..+5s"] {
            assert!(Window::read(bad).is_err(), "{bad}");
        }
        for bad in ["", "a,,b", "step:5..5", "step:8..", "step:x..9,step:9..1", ",", "a,b,c,d,e,f,g,h,i"] {
            assert!(Window::read(bad).is_err(), "{bad}");
        }
        assert_eq!(
            Window::read("step:5..5").unwrap_err().to_string(),
            "`step:5..5` is not a valid window: instances must be FROM..TO, with TO excluded"
        );
    }
}
