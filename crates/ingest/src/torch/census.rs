//! How many events of which kind there were, and how many could not be used and why.

use std::collections::BTreeMap;

use types::{Facts, QualityCounter, Severity};

use super::category::Category;

/// Counts of everything that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    kinds: [u64; Category::ALL.len()],
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

    /// The counter of so many of them, where there are any.
    fn counter(self, value: u64) -> Option<QualityCounter> {
        match self {
            Self::NotAnEvent => QualityCounter::some("trace_elements_not_events", Severity::Warning, value),
            Self::Phase => QualityCounter::some("trace_events_unknown_phase", Severity::Warning, value),
            Self::Incomplete => QualityCounter::some("trace_events_incomplete", Severity::Warning, value),
            Self::OutOfRange => QualityCounter::some("trace_events_out_of_range", Severity::Warning, value),
            Self::Negative => QualityCounter::some("trace_events_negative_duration", Severity::Warning, value),
            Self::Signature => QualityCounter::some("trace_signatures_unreadable", Severity::Info, value),
            Self::Header => QualityCounter::some("trace_header_unreadable", Severity::Info, value),
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
        Category::ALL.into_iter().map(|category| (category, self.count(category))).filter(|(_, count)| *count > 0)
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
        Category::ALL.into_iter().any(|category| !common.contains(&category) && self.count(category) > 0)
    }

    /// What was left out, as counters with a share of all events.
    pub(crate) fn quality(&self) -> Vec<QualityCounter> {
        let events = self.events();
        let of_fault = |fault: Fault| {
            let counter = fault.counter(self.faults[fault as usize])?;
            Some(if fault == Fault::Header { counter } else { counter.of(events) })
        };
        let unknown =
            QualityCounter::some("trace_events_unknown_category", Severity::Warning, self.unknown.values().sum());
        let unknown = unknown.map(|counter| counter.of(events).facts(self.examples_as_facts()));
        Fault::ALL.into_iter().filter_map(of_fault).chain(unknown).collect()
    }

    /// The most frequent unknown categories, shortened, and how many more there are.
    fn most_frequent(&self) -> (Vec<(String, u64)>, usize) {
        const MOST: usize = 5;
        let mut by_count: Vec<_> = self.unknown().collect();
        by_count.sort_by_key(|(category, count)| (std::cmp::Reverse(*count), *category));
        let named = by_count.iter().take(MOST).map(|(category, count)| (category.chars().take(40).collect(), *count));
        (named.collect(), by_count.len().saturating_sub(MOST))
    }

    fn examples_as_facts(&self) -> Facts {
        let (named, more) = self.most_frequent();
        let row = |(category, count)| Facts::new().with("category", String::as_str(&category)).with("events", count);
        let facts = Facts::new().with("categories", named.into_iter().map(row).collect::<Vec<_>>());
        facts.with_known("more", (more > 0).then_some(more))
    }

    /// The most frequent unknown categories, in words.
    pub(crate) fn examples(&self) -> String {
        let (named, more) = self.most_frequent();
        let named: Vec<_> = named.into_iter().map(|(category, count)| format!("`{category}` ({count})")).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        named.join(", ") + &more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_own_place_and_name() {
        let names: std::collections::BTreeSet<_> =
            Fault::ALL.iter().filter_map(|fault| fault.counter(1)).map(|counter| counter.counter).collect();
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
        let row = |category: &str, events: u64| Facts::new().with("category", category).with("events", events);
        assert_eq!(counter.quantities, Facts::new().with("categories", vec![row("b", 2), row("a", 1)]));
        assert_eq!(census.examples(), "`b` (2), `a` (1)");
    }
}
