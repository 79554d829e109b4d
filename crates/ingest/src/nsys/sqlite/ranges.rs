//! NVTX ranges and the domains they belong to; those that PyTorch writes for its operators become operators. Marks, categories
//! and names of threads are left out.

use std::collections::HashMap;

use types::timeline::{HostOperator, NameId, OperatorKind, OperatorSignature, Range, RangeStyle, Table, Timeline};

use super::emitted::{Emission, Emitted};
use super::identity::Threads;
use super::schema::NVTX;
use super::span;
use super::strings::Strings;
use crate::IngestError;
use crate::nsys::database::{Database, Losses, Malformed};

/// Types of event, as `ENUM_NSYS_EVENT_TYPE` of every export lists them. The second of each pair comes from text logs.
const PUSH_POP: [i64; 2] = [59, 70];
const START_END: [i64; 2] = [60, 71];
const DOMAIN_CREATE: i64 = 75;

/// A domain: its process, as packed with the machine, and its number there.
type Domain = (Option<i64>, i64);

/// The ranges of an export.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    pub(crate) rows: Vec<Range>,
    pub(crate) operators: Vec<HostOperator>,
    pub(crate) signatures: Table<OperatorSignature>,
    pub(crate) losses: Losses,
    /// Domains that ranges belong to and nothing names.
    pub(crate) unnamed_domains: u64,
}

impl Ranges {
    /// Reads every range there is.
    pub(crate) fn read(
        file: &str,
        database: &Database<'_>,
        strings: &mut Strings<'_>,
        threads: &mut Threads,
    ) -> Result<Self, IngestError> {
        let mut ranges = Self::default();
        let Some((table, layout)) = NVTX.find(file, database)? else { return Ok(ranges) };
        let mut emitted = Emitted::default();
        let mut domains: HashMap<Domain, NameId> = HashMap::new();
        // A domain can be named after its first range: rows of several threads are not in the order of time.
        let mut unnamed: HashMap<Domain, Vec<usize>> = HashMap::new();
        ranges.losses = database.rows(table, &layout, |[start, end, kind, text, thread, text_number, domain]| {
            let kind = kind.required()?;
            let thread = thread.integer()?;
            let number = domain.integer()?.unwrap_or(0);
            let domain = (thread.map(|thread| thread >> 24), number);
            let style = match kind {
                kind if PUSH_POP.contains(&kind) => RangeStyle::PushPop,
                kind if START_END.contains(&kind) => RangeStyle::StartEnd,
                DOMAIN_CREATE => {
                    let name = match (text.text()?, text_number.integer()?) {
                        (Some(text), _) => Some(strings.place(text)),
                        (None, Some(number)) => strings.find(number),
                        (None, None) => None,
                    };
                    domains.extend(name.map(|name| (domain, name)));
                    return Ok(());
                }
                _ => return Ok(()),
            };
            let start = start.required()?;
            let end = end.integer()?;
            let start = match end {
                Some(end) => span(start, end)?.0,
                None => Timeline::time(start).ok_or(Malformed)?,
            };
            let end = end.and_then(Timeline::time);
            let thread = threads.place(thread);
            let is_plain = number == 0 && style == RangeStyle::PushPop;
            let (emission, name) = match (text.text()?, text_number.integer()?) {
                (Some(text), _) => match is_plain.then(|| emitted.of(text, strings)).flatten() {
                    Some(emission) => (Some(emission), None),
                    None => (None, Some(strings.place(text))),
                },
                (None, Some(number)) => {
                    let name = strings.find(number).unwrap_or_else(|| strings.unknown());
                    (is_plain.then(|| emitted.of_name(name, strings)).flatten(), Some(name))
                }
                (None, None) => (None, Some(strings.place(b""))),
            };
            let name = match (emission, end) {
                (Some(Emission::Operator(name, signature)), Some(end)) => {
                    let duration = end - start;
                    let kind = OperatorKind::Framework;
                    let operator = HostOperator { kind, name, thread, signature, start, duration, call: None };
                    ranges.operators.push(operator);
                    return Ok(());
                }
                (Some(Emission::Operator(name, _) | Emission::Range(name)), _) => name,
                (None, _) => name.unwrap_or_else(|| strings.unknown()),
            };
            let name_of_domain = match number {
                0 => None,
                _ => {
                    let name = domains.get(&domain).copied();
                    if name.is_none() {
                        unnamed.entry(domain).or_default().push(ranges.rows.len());
                    }
                    name
                }
            };
            ranges.rows.push(Range { style, name, domain: name_of_domain, thread, start, end });
            Ok(())
        });
        ranges.signatures = emitted.signatures;
        for (domain, rows) in unnamed {
            let name = domains.get(&domain).copied().unwrap_or_else(|| {
                ranges.unnamed_domains += 1;
                strings.place(format!("domain {}", domain.1).as_bytes())
            });
            for row in rows {
                ranges.rows[row].domain = Some(name);
            }
        }
        Ok(ranges)
    }
}
