//! Choices of a capture that configuration, command lines, documents and the profilers themselves spell alike, and the
//! expression by which Nsight Compute names a range.

use serde::{Deserialize, Serialize};

use crate::JsonSchema;

/// What kind of NVTX range a region is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegionStyle {
    /// Pushed and popped on one thread: regions nest.
    #[default]
    PushPop,
    /// Started and ended by handle: regions overlap freely and are never nested in one another.
    StartEnd,
}

crate::named! {
    /// How a profiler gets more counters than one pass has room for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum ReplayMode {
        /// Every kernel is run again until all counters are read.
        #[default]
        Kernel = "kernel",
        /// A range is recorded and run again as a whole.
        Range = "range",
        /// A range is measured as a whole, and the program run again for every pass.
        AppRange = "app-range",
        /// Every kernel is measured, and the program run again for every pass.
        Application = "application",
    }
}

crate::named! {
    /// Which form of a kernel's name a filter is compared with.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum KernelNameBase {
        /// The function alone: no namespaces, template arguments or parameters.
        #[default]
        Function = "function",
        /// The whole demangled signature, as it is printed.
        Demangled = "demangled",
        /// The name as in the object file. Pages do not show it, so that only the profiler can compare with it.
        Mangled = "mangled",
    }
}

crate::named! {
    /// What records the timeline of a program.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Collector {
        /// Whichever works here: our own first.
        #[default]
        Auto = "auto",
        /// Our own library, loaded into the program.
        Inject = "inject",
        /// Nsight Systems.
        Nsys = "nsys",
        /// Our own, and Nsight Systems in a run of its own.
        Both = "both",
        /// Nothing.
        None = "none",
    }
}

impl ReplayMode {
    /// Whether one result is a whole range rather than one kernel.
    pub const fn measures_ranges(self) -> bool {
        matches!(self, Self::Range | Self::AppRange)
    }
}

/// Characters with a meaning of their own in an expression of Nsight Compute; a backslash makes them part of a name.
const SIGNS: &str = "\\/@,[]*+";

/// The expression by which `--nvtx-include` and `--nvtx-exclude` of Nsight Compute name a range, its segments given from
/// the outermost in: `LLM@prefill/`, `A/A1/`. The slash at the end marks a push/pop range; a start/end range has none.
pub fn range_expression<S: AsRef<str>>(domain: Option<&str>, segments: &[S], style: RegionStyle) -> String {
    let mut text = String::new();
    let mut push = |name: &str, end: &str| {
        for character in name.chars() {
            if SIGNS.contains(character) {
                text.push('\\');
            }
            text.push(character);
        }
        text.push_str(end);
    };
    if let Some(domain) = domain {
        push(domain, "@");
    }
    for (place, segment) in segments.iter().enumerate() {
        let is_bare = style == RegionStyle::StartEnd && place + 1 == segments.len();
        push(segment.as_ref(), if is_bare { "" } else { "/" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_named_with_a_slash_behind_and_its_own_characters_escaped() {
        let expression = |domain, segments: &[&str]| range_expression(domain, segments, RegionStyle::PushPop);
        assert_eq!(expression(Some("LLM"), &["prefill"]), "LLM@prefill/");
        assert_eq!(expression(None, &["A", "A1"]), "A/A1/");
        assert_eq!(expression(None, &["cub::DeviceScan::ExclusiveScan"]), "cub::DeviceScan::ExclusiveScan/");
        assert_eq!(expression(Some("a@b"), &["x/y", "[0]*"]), r"a\@b@x\/y/\[0\]\*/");
    }

    #[test]
    fn a_start_end_range_has_no_slash_behind_it() {
        let expression = |name| range_expression(Some("LLM"), &[name], RegionStyle::StartEnd);
        assert_eq!(expression("request"), "LLM@request");
        assert_eq!(expression("GET /"), r"LLM@GET \/", "a slash of its own stays");
    }

    #[test]
    fn names_are_those_of_the_configuration() {
        for mode in ReplayMode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
        for base in KernelNameBase::ALL {
            assert_eq!(serde_json::to_value(base).unwrap(), base.name());
        }
    }
}
