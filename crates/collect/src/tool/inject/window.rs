//! Which parts of a program our collector records.

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

/// Four weeks; the library counts milliseconds in 32 bits.
const LONGEST_SECONDS: u32 = 4 * 7 * 24 * 3600;

/// A number as the library reads it: digits alone.
fn whole(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl Window {
    /// Reads a list of ranges. The limits are those of the library, which has fixed room for it.
    pub fn read(text: &str) -> Result<Self, WindowError> {
        let wrong = |reason| WindowError { text: text.to_owned(), reason };
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 8 {
            return Err(wrong("it has more than 8 parts"));
        }
        for part in parts {
            if let Some((from, to)) = part.strip_suffix('s').and_then(|part| part.split_once("s..")) {
                let seconds = |text: &str| whole(text).filter(|seconds| *seconds <= LONGEST_SECONDS);
                if seconds(from).zip(seconds(to)).is_none_or(|(from, to)| from >= to) {
                    return Err(wrong("seconds must be FROMs..TOs, whole and increasing"));
                }
                continue;
            }
            if let Some((_, size)) = part
                .split_once(' ')
                .filter(|(mode, size)| ["decode", "prefill", "mixed"].contains(mode) && size.contains('='))
            {
                let of = size.strip_prefix("bs").or_else(|| size.strip_prefix("toks")).unwrap_or_default();
                let number = [">=", "<=", "="].into_iter().find_map(|sign| of.strip_prefix(sign));
                if number.and_then(whole).is_none() {
                    return Err(wrong(
                        "steps must be decode, prefill or mixed, then bs or toks, then >=, <= or = and a number",
                    ));
                }
                continue;
            }
            let name = match part.rsplit_once(':') {
                Some((name, instances)) if instances.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                    let ends = match instances.split_once("..") {
                        Some((from, to)) => whole(from).zip(whole(to)),
                        None => whole(instances).and_then(|one| Some((one, one.checked_add(1)?))),
                    };
                    if ends.is_none_or(|(from, to)| from >= to) {
                        return Err(wrong("instances must be FROM..TO, with TO excluded"));
                    }
                    name
                }
                _ => part,
            };
            if name.is_empty() || name.len() > 64 {
                return Err(wrong("a name must have 1 to 64 bytes"));
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
