//! The details page: one row per metric and per rule, regrouped to what was profiled.
//!
//! Rows are ragged. A row of a metric ends behind its value, a row of a rule goes on, and `--print-details all` puts
//! one more column before the metric's name.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use types::counter::{
    CounterSection, CounterValue, DetailedWork, EstimatedSpeedup, RuleKind, RuleResult, SectionMetric, SpeedupScope,
};

use super::header::Header;
use super::rows::{Next, Rows};
use super::texts::Texts;
use super::{DetailsPage, limit, unit, value};
use crate::csv::Records;
use crate::{IngestError, decimal};

/// Columns of a details page.
#[derive(Clone, Copy)]
struct Columns {
    section: usize,
    label: Option<usize>,
    metric: usize,
    unit: usize,
    value: usize,
    rule: Option<RuleColumns>,
}

#[derive(Clone, Copy)]
struct RuleColumns {
    name: usize,
    kind: usize,
    description: usize,
    speedup: Option<(usize, usize)>,
}

impl Columns {
    fn find(header: &Header) -> Option<Self> {
        let place = |name| header.place(name);
        let rule = || {
            Some(RuleColumns {
                name: place("Rule Name")?,
                kind: place("Rule Type")?,
                description: place("Rule Description")?,
                speedup: place("Estimated Speedup Type").zip(place("Estimated Speedup")),
            })
        };
        Some(Self {
            section: place("Section Name")?,
            label: place("Body Item Label"),
            metric: place("Metric Name")?,
            unit: place("Metric Unit")?,
            value: place("Metric Value")?,
            rule: rule(),
        })
    }
}

/// Reads what follows the header.
pub(super) fn read<R: BufRead>(mut rows: Rows<'_, '_, R>, header: Header) -> Result<DetailsPage, IngestError> {
    let wrong = |records: &Records<'_, R>, reason: &str| IngestError::NotCsv {
        file: records.file().to_owned(),
        line: records.line(),
        reason: reason.to_owned(),
    };
    let Some(mut columns) = Columns::find(&header) else {
        return Err(wrong(rows.records, "the details page has no column for section, name, unit or value"));
    };
    let mut header = header;
    let mut texts = Texts::default();
    let mut works: Vec<DetailedWork> = Vec::new();
    let mut places: HashMap<(u64, Option<u32>), usize> = HashMap::new();
    loop {
        let widths = columns.value + 1..=header.names.len();
        match rows.next(&header, |fields| widths.contains(&fields))? {
            Next::End => break,
            Next::Header(next) => {
                columns = Columns::find(&next).ok_or_else(|| super::mixed(rows.records))?;
                header = next;
            }
            Next::Row => {
                let entry = entry(rows.records, columns, header.names.len(), &mut texts);
                let (Some(key), Some(entry)) = (header.key(rows.records), entry) else {
                    rows.refuse();
                    continue;
                };
                rows.tally.read += 1;
                rows.tally.decimal_commas += u64::from(entry.has_decimal_comma());
                let (entry, was_impossible) = entry.possible();
                rows.tally.impossible += u64::from(was_impossible);
                if let Some(place) = places.get(&key) {
                    add(&mut works[*place], entry);
                } else if let Some(work) = header.work(rows.records, &mut texts) {
                    places.insert(key, works.len());
                    let mut work = DetailedWork { work, sections: Vec::new(), rules: Vec::new() };
                    add(&mut work, entry);
                    works.push(work);
                }
            }
        }
    }
    Ok(DetailsPage { works, messages: rows.log.into_messages(), quality: rows.tally.counters() })
}

/// What one row says.
enum Entry {
    Metric(Arc<str>, SectionMetric),
    Rule(RuleResult),
}

impl Entry {
    /// The same without a number that cannot be, and whether there was one.
    fn possible(mut self) -> (Self, bool) {
        let Self::Metric(_, metric) = &mut self else { return (self, false) };
        let possible = limit::of(&metric.name, &metric.unit);
        let is_impossible = metric.value.as_ref().is_some_and(|found| !value::is_possible(found, &possible));
        if is_impossible {
            metric.value = None;
        }
        (self, is_impossible)
    }

    fn has_decimal_comma(&self) -> bool {
        let Self::Metric(_, metric) = self else { return false };
        metric.value.as_ref().and_then(CounterValue::text).is_some_and(value::has_decimal_comma)
    }
}

fn add(work: &mut DetailedWork, entry: Entry) {
    match entry {
        Entry::Rule(rule) => work.rules.push(rule),
        Entry::Metric(title, metric) => section(work, title).metrics.push(metric),
    }
}

/// The section of that title. Rows of one section stand together, so it is nearly always the last.
fn section(work: &mut DetailedWork, title: Arc<str>) -> &mut CounterSection {
    let place = work.sections.iter().rposition(|section| section.title == title).unwrap_or_else(|| {
        work.sections.push(CounterSection { title, metrics: Vec::new() });
        work.sections.len() - 1
    });
    &mut work.sections[place]
}

fn entry<R: BufRead>(records: &Records<'_, R>, columns: Columns, width: usize, texts: &mut Texts) -> Option<Entry> {
    let field = |index| records.field(index).unwrap_or_default();
    let section = texts.share(&field(columns.section));
    let metric = field(columns.metric);
    if !metric.is_empty() {
        let tool_unit = field(columns.unit);
        let (unit, power) = unit::base(&tool_unit);
        let label = columns.label.map(field).filter(|label| !label.is_empty());
        let metric = SectionMetric {
            label: label.map(|label| texts.share(&label)),
            name: texts.share(&metric),
            unit,
            tool_unit: texts.share(&tool_unit),
            value: value::value(&field(columns.value), power),
        };
        return Some(Entry::Metric(section, metric));
    }
    let rule = columns.rule.filter(|rule| !field(rule.name).is_empty())?;
    // A rule's row has every column; one that ends early has lost its words.
    if records.len() != width {
        return None;
    }
    let speedup = rule.speedup.and_then(|(scope, percent)| {
        let percent = decimal::number(field(percent).as_bytes(), 0)?;
        let scope = match &*field(scope) {
            "global" => SpeedupScope::Global,
            "local" => SpeedupScope::Local,
            other => SpeedupScope::Other(texts.share(other)),
        };
        Some(EstimatedSpeedup { scope, percent })
    });
    let kind = match &*field(rule.kind) {
        "OPT" => RuleKind::Optimization,
        "INF" => RuleKind::Information,
        "WRN" => RuleKind::Warning,
        "ERR" => RuleKind::Error,
        other => RuleKind::Other(texts.share(other)),
    };
    let name = texts.share(&field(rule.name));
    let description = texts.share(&field(rule.description));
    Some(Entry::Rule(RuleResult { section, name, kind, description, speedup }))
}
