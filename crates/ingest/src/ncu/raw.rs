//! The raw page: one row per kernel or range, one column per counter, a row of units under the header.

use std::collections::HashSet;
use std::io::BufRead;
use std::ops::RangeInclusive;

use types::counter::{CounterTable, CounterValue};

use super::header::Header;
use super::rows::{Next, Rows};
use super::texts::Texts;
use super::{RawPage, limit, unit, value};
use crate::csv::{Records, Shape};
use crate::{IngestError, decimal};

/// Where a column of the file goes.
#[derive(Clone)]
struct Target {
    field: usize,
    column: usize,
    power: i32,
    possible: RangeInclusive<f64>,
}

/// What a cell was.
enum Cell {
    Read,
    DecimalComma,
    Impossible,
}

/// Reads what follows the header.
pub(super) fn read<R: BufRead>(
    mut rows: Rows<'_, '_, R>,
    mut header: Header,
    keep: &dyn Fn(&str) -> bool,
) -> Result<RawPage, IngestError> {
    let mut table = CounterTable::default();
    let mut texts = Texts::default();
    let mut targets = units(&mut rows, &header, keep, &mut table)?;
    loop {
        let width = header.names.len();
        match rows.next(&header, |fields| fields == width)? {
            Next::End => break,
            Next::Header(next) => {
                if next.has("Metric Name") {
                    return Err(super::mixed(rows.records));
                }
                header = next;
                targets = units(&mut rows, &header, keep, &mut table)?;
            }
            Next::Row => match header.work(rows.records, &mut texts) {
                None => rows.refuse(),
                Some(work) => {
                    let row = table.work.len();
                    table.work.push(work);
                    rows.tally.read += 1;
                    for target in &targets {
                        match set(&mut table, row, target, rows.records) {
                            Cell::Read => {}
                            Cell::DecimalComma => rows.tally.decimal_commas += 1,
                            Cell::Impossible => rows.tally.impossible += 1,
                        }
                    }
                }
            },
        }
    }
    Ok(RawPage { table, messages: rows.log.into_messages(), quality: rows.tally.counters() })
}

/// Sets one cell, and says what it was.
fn set<R: BufRead>(table: &mut CounterTable, row: usize, target: &Target, records: &Records<'_, R>) -> Cell {
    let column = table.column_mut(target.column);
    // Nearly all cells are plain numbers.
    if let Some(number) = records.raw(target.field).and_then(|cell| decimal::number(cell, target.power)) {
        if !target.possible.contains(&number) {
            return Cell::Impossible;
        }
        column.set_number(row, number);
        return Cell::Read;
    }
    let Some(value) = records.field(target.field).and_then(|cell| value::value(&cell, target.power)) else {
        return Cell::Read;
    };
    if !value::is_possible(&value, &target.possible) {
        return Cell::Impossible;
    }
    let has_decimal_comma = value.text().is_some_and(value::has_decimal_comma);
    column.set(row, value);
    if has_decimal_comma { Cell::DecimalComma } else { Cell::Read }
}

/// Reads the row of units and makes the columns.
fn units<R: BufRead>(
    rows: &mut Rows<'_, '_, R>,
    header: &Header,
    keep: &dyn Fn(&str) -> bool,
    table: &mut CounterTable,
) -> Result<Vec<Target>, IngestError> {
    let wrong = |records: &Records<'_, R>, reason: String| IngestError::NotCsv {
        file: records.file().to_owned(),
        line: records.line(),
        reason,
    };
    let found = rows.records.next_line()? && rows.records.split_record()? == Shape::Whole;
    let width = header.names.len();
    if !found || rows.records.len() != width {
        let fields = rows.records.len();
        return Err(wrong(rows.records, format!("expected the row of units with {width} fields, got {fields} fields")));
    }
    if !rows.records.is_terminated() {
        return Err(wrong(rows.records, "the file ends within the row of units".to_owned()));
    }
    if rows.records.raw(0).is_some_and(|id| !id.is_empty()) {
        let reason = "expected the row of units under the header, got a row with a number".to_owned();
        return Err(wrong(rows.records, reason));
    }
    let (mut targets, mut taken) = (Vec::new(), HashSet::new());
    for (field, name) in header.counters() {
        if !keep(name) {
            continue;
        }
        let tool_unit = rows.records.field(field).unwrap_or_default();
        let (unit, power) = unit::base(&tool_unit);
        let column = table.add_column(name, unit.clone(), &tool_unit);
        let known = table.columns()[column].unit();
        if *known != unit {
            let reason = format!("counter `{name}` is in `{unit}` here and in `{known}` in an earlier table");
            return Err(wrong(rows.records, reason));
        }
        // A name that stands in one header twice keeps its first column.
        if taken.insert(column) {
            let possible = limit::of(name, &unit);
            targets.push(Target { field, column, power, possible });
        }
    }
    Ok(targets)
}

impl RawPage {
    /// What is said about a counter of one row.
    pub fn value(&self, row: usize, counter: &str) -> Option<CounterValue> {
        self.table.column(counter)?.value(row)
    }
}
