//! Counters by column, one row per profiled work.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{CounterUnit, CounterValue, ProfiledWork};

/// One counter of every profiled work of a file.
#[derive(Clone, Debug)]
pub struct CounterColumn {
    name: Arc<str>,
    unit: CounterUnit,
    tool_unit: Arc<str>,
    /// A profile has millions of these and nearly all are numbers, so a number takes eight bytes and NaN is "absent";
    /// no number of a counter is NaN. Rows past the end are absent too.
    numbers: Vec<f64>,
    /// What is no plain number, by row.
    others: BTreeMap<usize, CounterValue>,
}

/// Counters of the profiled works of a file, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct CounterTable {
    /// What was profiled.
    pub work: Vec<ProfiledWork>,
    columns: Vec<CounterColumn>,
    places: HashMap<Arc<str>, usize>,
}

impl CounterColumn {
    /// The counter's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The unit of its numbers here.
    pub fn unit(&self) -> &CounterUnit {
        &self.unit
    }

    /// The unit of its numbers in the file, in the tool's words.
    pub fn tool_unit(&self) -> &str {
        &self.tool_unit
    }

    /// What is said about row `row`.
    pub fn value(&self, row: usize) -> Option<CounterValue> {
        self.plain(row).map(CounterValue::Number).or_else(|| self.others.get(&row).cloned())
    }

    /// The number in row `row`, for the whole where there are instances.
    pub fn number(&self, row: usize) -> Option<f64> {
        self.plain(row).or_else(|| self.others.get(&row)?.number())
    }

    fn plain(&self, row: usize) -> Option<f64> {
        self.numbers.get(row).copied().filter(|number| !number.is_nan())
    }

    /// Sets row `row`, which no value was set for yet. Earlier rows without a value are absent.
    pub fn set(&mut self, row: usize, value: CounterValue) {
        match value {
            CounterValue::Number(number) => self.set_number(row, number),
            other => {
                self.others.insert(row, other);
            }
        }
    }

    /// Sets row `row` to a number.
    pub fn set_number(&mut self, row: usize, number: f64) {
        match self.numbers.get_mut(row) {
            Some(place) => *place = number,
            None => {
                if row > self.numbers.len() {
                    self.numbers.resize(row, f64::NAN);
                }
                self.numbers.push(number);
            }
        }
    }
}

impl CounterTable {
    /// All counters, in the order of the file.
    pub fn columns(&self) -> &[CounterColumn] {
        &self.columns
    }

    /// The counter of that name.
    pub fn column(&self, name: &str) -> Option<&CounterColumn> {
        self.columns.get(*self.places.get(name)?)
    }

    /// Place of the counter of that name in [`Self::columns`].
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The number of a counter in one row.
    pub fn number(&self, row: usize, name: &str) -> Option<f64> {
        self.column(name)?.number(row)
    }

    /// Adds a counter and says its place. A name that is there already keeps its column and its units.
    pub fn add_column(&mut self, name: &str, unit: CounterUnit, tool_unit: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let name: Arc<str> = Arc::from(name);
        self.places.insert(Arc::clone(&name), self.columns.len());
        let tool_unit = Arc::from(tool_unit);
        self.columns.push(CounterColumn { name, unit, tool_unit, numbers: Vec::new(), others: BTreeMap::new() });
        self.columns.len() - 1
    }

    /// The counter at a place that [`Self::add_column`] gave.
    ///
    /// # Panics
    /// When the place is of a larger table.
    pub fn column_mut(&mut self, place: usize) -> &mut CounterColumn {
        &mut self.columns[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_were_never_set_are_absent_and_not_zero() {
        let mut table = CounterTable::default();
        let place = table.add_column("dram__bytes.sum", CounterUnit::Bytes, "Mbyte");
        table.column_mut(place).set_number(2, 5e6);
        let numbers: Vec<_> = (0..4).map(|row| table.number(row, "dram__bytes.sum")).collect();
        assert_eq!(numbers, [None, None, Some(5e6), None]);
        assert_eq!(table.number(2, "dram__bytes.avg"), None);
    }

    #[test]
    fn texts_stand_beside_numbers_in_one_column() {
        let mut table = CounterTable::default();
        let place = table.add_column("launch__tpc_enabled", CounterUnit::Plain, "");
        table.column_mut(place).set(0, CounterValue::Text("all".into()));
        table.column_mut(place).set(1, CounterValue::Number(66.0));
        let column = &table.columns()[place];
        assert_eq!(column.value(0).as_ref().and_then(CounterValue::text), Some("all"));
        assert_eq!((column.number(0), column.number(1)), (None, Some(66.0)));
    }

    #[test]
    fn a_counter_has_one_column() {
        let mut table = CounterTable::default();
        let first = table.add_column("a", CounterUnit::Plain, "");
        assert_eq!(table.add_column("a", CounterUnit::Plain, ""), first);
        assert_eq!((table.columns().len(), table.place("a"), table.place("b")), (1, Some(0), None));
    }
}
