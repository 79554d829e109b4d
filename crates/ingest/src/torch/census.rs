//! How many events of which kind there were, and how many could not be used and why.

use std::collections::BTreeMap;

use types::{QualityCounter, Severity};

use super::category::{ALL, Category};

/// Counts of everything that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    kinds: [u64; ALL.len()],
    unknown: BTreeMap<String, u64>,
    pub(crate) faults: [u64; Fault::ALL.len()],
}

/// Why an event, or a part of one, was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An element of the list of events that is no object.
    NotAnEvent,
    /// A phase nobody knows, such as a start without its end.
    Phase,
    /// A field that is needed is missing or of another kind.
    Incomplete,
    /// A time past what a timeline can hold.
    OutOfRange,
    /// A duration below zero.
    Negative,
    /// Dimensions, types or strides of another form.
    Signature,
    /// A field of the document of another form.
    Header,
}

impl Fault {
    const ALL: [Self; 7] = [
        Self::NotAnEvent,
        Self::Phase,
        Self::Incomplete,
        Self::OutOfRange,
        Self::Negative,
        Self::Signature,
        Self::Header,
    ];

    fn describe(self) -> (&'static str, Severity, &'static str) {
        match self {
            Self::NotAnEvent => (
                "trace_elements_not_events",
                Severity::Warning,
                "elements of `traceEvents` that are not objects were skipped; check the program that wrote or changed \
                 the file",
            ),
            Self::Phase => (
                "trace_events_unknown_phase",
                Severity::Warning,
                "events with a phase that the torch profiler does not write were skipped; check the program that wrote \
                 the file",
            ),
            Self::Incomplete => (
                "trace_events_incomplete",
                Severity::Warning,
                "events without a usable name, time, duration or device were skipped; record again with a newer PyTorch",
            ),
            Self::OutOfRange => (
                "trace_events_out_of_range",
                Severity::Warning,
                "events more than 73 years from the clock's zero were skipped; check the clock of the machine",
            ),
            Self::Negative => (
                "trace_events_negative_duration",
                Severity::Warning,
                "events that end before they start were skipped; record again with a newer PyTorch",
            ),
            Self::Signature => (
                "trace_signatures_unreadable",
                Severity::Info,
                "operators were kept without argument shapes, because the shapes are not lists of integers",
            ),
            Self::Header => (
                "trace_header_unreadable",
                Severity::Info,
                "header fields in an unknown form were skipped; devices or ranks may be missing",
            ),
        }
    }
}

impl Census {
    /// Events of a kind.
    pub fn count(&self, category: Category) -> u64 {
        self.kinds[category as usize]
    }

    /// Every kind with its count, kinds that do not occur left out.
    pub fn counts(&self) -> impl Iterator<Item = (Category, u64)> {
        ALL.into_iter().map(|category| (category, self.count(category))).filter(|(_, count)| *count > 0)
    }

    /// Spans of categories this reader does not know, by category.
    pub fn unknown(&self) -> impl Iterator<Item = (&str, u64)> {
        self.unknown.iter().map(|(category, count)| (category.as_str(), *count))
    }

    /// All events, with those that were left out.
    pub fn events(&self) -> u64 {
        let spans_without_use = [Fault::NotAnEvent, Fault::Phase].map(|fault| self.faults[fault as usize]);
        self.kinds.iter().chain(self.unknown.values()).chain(&spans_without_use).sum()
    }

    pub(crate) fn add(&mut self, category: Category) {
        self.kinds[category as usize] += 1;
    }

    pub(crate) fn add_unknown(&mut self, category: &str) {
        match self.unknown.get_mut(category) {
            Some(count) => *count += 1,
            None => {
                self.unknown.insert(category.to_owned(), 1);
            }
        }
    }

    pub(crate) fn add_fault(&mut self, fault: Fault) {
        self.faults[fault as usize] += 1;
    }

    /// Adds the counts of another part of the same trace.
    pub(crate) fn absorb(&mut self, other: Self) {
        for (sum, count) in self.kinds.iter_mut().zip(other.kinds) {
            *sum += count;
        }
        for (sum, count) in self.faults.iter_mut().zip(other.faults) {
            *sum += count;
        }
        for (category, count) in other.unknown {
            *self.unknown.entry(category).or_default() += count;
        }
    }

    /// Whether any event is of a kind only the torch profiler writes.
    pub(crate) fn is_of_torch(&self) -> bool {
        let common = [Category::Instant, Category::Flow, Category::Metadata];
        ALL.into_iter().any(|category| !common.contains(&category) && self.count(category) > 0)
    }

    /// What was left out, as counters with a share of all events.
    pub(crate) fn quality(&self) -> Vec<QualityCounter> {
        let events = self.events();
        let share = |value: u64| (events > 0).then(|| (value as f64 / events as f64).min(1.0));
        let counter = |(counter, severity, remedy): (&str, Severity, &str), value, share| QualityCounter {
            counter: counter.to_owned(),
            value,
            share,
            severity,
            remedy: remedy.to_owned(),
        };
        let mut quality = Vec::new();
        for fault in Fault::ALL {
            let value = self.faults[fault as usize];
            let whole = if fault == Fault::Header { None } else { share(value) };
            if value > 0 {
                quality.push(counter(fault.describe(), value, whole));
            }
        }
        let unknown = self.unknown.values().sum();
        if unknown > 0 {
            let remedy = format!("skipped: {}; these event categories are not supported", self.examples());
            let described = ("trace_events_unknown_category", Severity::Warning, remedy.as_str());
            quality.push(counter(described, unknown, share(unknown)));
        }
        quality
    }

    /// The most frequent unknown categories, in words.
    pub(crate) fn examples(&self) -> String {
        const MOST: usize = 5;
        let mut by_count: Vec<_> = self.unknown().collect();
        by_count.sort_by_key(|(category, count)| (std::cmp::Reverse(*count), *category));
        let named = by_count.iter().take(MOST).map(|(category, count)| {
            let short: String = category.chars().take(40).collect();
            format!("`{short}` ({count})")
        });
        let mut words = named.collect::<Vec<_>>().join(", ");
        if by_count.len() > MOST {
            words.push_str(&format!(" and {} more", by_count.len() - MOST));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_own_place_and_name() {
        let names: std::collections::BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.describe().0).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        assert!(Fault::ALL.iter().enumerate().all(|(place, fault)| *fault as usize == place));
    }

    #[test]
    fn unknown_categories_are_named_with_their_share() {
        let mut census = Census::default();
        census.add(Category::Kernel);
        for category in ["b", "a", "b"] {
            census.add_unknown(category);
        }
        let [counter] = &census.quality()[..] else { panic!("one counter") };
        assert_eq!((counter.value, counter.share), (3, Some(0.75)));
        assert!(counter.remedy.contains("`b` (2), `a` (1)"), "{}", counter.remedy);
    }
}
