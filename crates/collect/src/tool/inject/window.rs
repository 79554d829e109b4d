//! Which ranges of a program our collector records in.

use types::{Exit, Failure};

/// Ranges to collect in: `prefill,decode_step:8..16`.
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
        let step = "list range names, each with an optional span of instances: prefill, decode_step:8..16, \
                    prefill,decode_step:0..8";
        Some(step.to_owned())
    }
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
            let name = match part.rsplit_once(':') {
                Some((name, instances)) if instances.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                    let ends = match instances.split_once("..") {
                        Some((from, to)) => from.parse::<u32>().ok().zip(to.parse::<u32>().ok()),
                        None => instances.parse::<u32>().ok().and_then(|one| Some((one, one.checked_add(1)?))),
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
        for good in ["prefill", "decode_step:8..16", "cub::DeviceScan", "prefill,decode_step:0", "a:b"] {
            assert_eq!(Window::read(good).unwrap().as_str(), good);
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
