//! Counters by section, with the profiler's own advice.

use std::fmt;
use std::sync::Arc;

use super::{CounterUnit, CounterValue, ProfiledWork};

/// One profiled work with its sections.
#[derive(Clone, Debug, PartialEq)]
pub struct DetailedWork {
    /// What was profiled.
    pub work: ProfiledWork,
    /// Sections in the order of the file.
    pub sections: Vec<CounterSection>,
    /// What the profiler's rules say, in the order of the file.
    pub rules: Vec<RuleResult>,
}

/// A section of a details page.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterSection {
    /// Its title, such as `GPU Speed Of Light Throughput`.
    pub title: Arc<str>,
    /// Its metrics in the order of the file.
    pub metrics: Vec<SectionMetric>,
}

/// One metric of a section.
#[derive(Clone, Debug, PartialEq)]
pub struct SectionMetric {
    /// Table or chart of the section it stands in; absent for the section's own.
    pub label: Option<Arc<str>>,
    /// Its name: a title such as `Duration`, or a counter such as `dram__bytes_read.sum`.
    pub name: Arc<str>,
    /// The unit of its number here.
    pub unit: CounterUnit,
    /// The unit of its number in the file, in the tool's words.
    pub tool_unit: Arc<str>,
    /// What is said; absent where the tool has no value, because the chip lacks the counter for example.
    pub value: Option<CounterValue>,
}

/// What one rule of the profiler says about one work.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleResult {
    /// Identifier of the section it judges, such as `SpeedOfLight`. Not the section's title.
    pub section: Arc<str>,
    /// The rule, such as `SOLBottleneck`.
    pub name: Arc<str>,
    /// How much it matters.
    pub kind: RuleKind,
    /// The tool's own words.
    pub description: Arc<str>,
    /// What following it would save; absent where the tool does not say.
    pub speedup: Option<EstimatedSpeedup>,
}

/// How the profiler ranks a rule's result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleKind {
    /// `OPT`: something can be made faster.
    Optimization,
    /// `INF`: good to know.
    Information,
    /// `WRN`: numbers may mislead.
    Warning,
    /// `ERR`: the rule could not be applied.
    Error,
    /// Another, in the tool's word.
    Other(Arc<str>),
}

/// What following a rule would save, by the profiler's own estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimatedSpeedup {
    /// What the share is of.
    pub scope: SpeedupScope,
    /// Share in percent.
    pub percent: f64,
}

/// What an estimated speedup is a share of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SpeedupScope {
    /// The time of the whole kernel.
    Global,
    /// The part of the chip that the rule looks at.
    Local,
    /// Another, in the tool's word.
    Other(Arc<str>),
}

impl DetailedWork {
    /// The section of that title.
    pub fn section(&self, title: &str) -> Option<&CounterSection> {
        self.sections.iter().find(|section| &*section.title == title)
    }
}

impl CounterSection {
    /// The first metric of that name outside tables and charts, else the first inside one.
    pub fn metric(&self, name: &str) -> Option<&SectionMetric> {
        let named = || self.metrics.iter().filter(|metric| &*metric.name == name);
        named().find(|metric| metric.label.is_none()).or_else(|| named().next())
    }

    /// The number of that metric.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.metric(name)?.value.as_ref()?.number()
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Optimization => "optimization",
            Self::Information => "information",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Other(kind) => kind,
        })
    }
}
