//! Totals of one region over a list of kernels or ranges.

use std::collections::BTreeMap;
use std::collections::HashMap;

use types::counter::{CounterColumn, CounterTable, DetailedWork, ProfiledKind};
use types::{DeviceId, InstanceTimes, MetricRule, Nanos, RegionKernel, RegionTotals, RolledValue};

use super::capture::RegionCapture;
use super::section::Sections;
use super::value::Accumulator;
use crate::counter::TIME;
use crate::kernel;

/// A kernel or a range: its page and its row there.
pub(super) type Row = (usize, usize);

/// Pages with what is looked up again and again found once.
pub(super) struct Pages<'a> {
    pages: Vec<Page<'a>>,
    pub(super) metrics: Vec<MetricRule>,
    sections: &'a [String],
}

struct Page<'a> {
    table: &'a CounterTable,
    time: Option<&'a CounterColumn>,
    metrics: Vec<Option<&'a CounterColumn>>,
    details: HashMap<(u64, Option<u32>), &'a DetailedWork>,
}

impl<'a> Pages<'a> {
    /// Finds the columns of `metrics` on every page.
    pub(super) fn new(captures: &[RegionCapture<'a>], metrics: Vec<MetricRule>, sections: &'a [String]) -> Self {
        let page = |capture: &RegionCapture<'a>| Page {
            table: capture.table,
            time: capture.table.column(TIME),
            metrics: metrics.iter().map(|metric| capture.table.column(&metric.name)).collect(),
            details: capture.details.iter().map(|work| ((work.work.id, work.work.process), work)).collect(),
        };
        Self { pages: captures.iter().map(page).collect(), metrics, sections }
    }

    /// The page of a row.
    pub(super) fn table(&self, row: Row) -> &'a CounterTable {
        self.pages[row.0].table
    }

    /// Time of a row in nanoseconds.
    pub(super) fn time(&self, (page, row): Row) -> Option<f64> {
        self.pages[page].time?.number(row)
    }

    /// Time of all rows; absent where one has none.
    pub(super) fn total_time(&self, rows: &[Row]) -> Option<Nanos> {
        let sum = rows.iter().map(|row| self.time(*row)).sum::<Option<f64>>()?;
        Some(Nanos::new(sum.round() as i64))
    }

    /// Whether a row is a kernel rather than a whole range.
    pub(super) fn is_kernel(&self, (page, row): Row) -> bool {
        self.pages[page].table.work[row].kind != ProfiledKind::Range
    }

    /// Values of every metric over all rows, and how many rows had none.
    pub(super) fn values(&self, rows: &[Row]) -> Vec<(Option<f64>, u64)> {
        let of_metric = |(place, metric): (usize, &MetricRule)| {
            let mut all = Accumulator::default();
            for (page, row) in rows {
                let page = &self.pages[*page];
                let value = page.metrics[place].and_then(|column| column.number(*row));
                all.add(value, page.time.and_then(|column| column.number(*row)));
            }
            (all.value(metric.rule), all.missing)
        };
        self.metrics.iter().enumerate().map(of_metric).collect()
    }

    /// Totals over kernels: what is inside, and what is not nested any further.
    pub(super) fn of_kernels(&self, inclusive: &[Row], exclusive: &[Row]) -> RegionTotals {
        let apart = self.values(exclusive);
        RegionTotals {
            kernels_inclusive: Some(inclusive.len() as u64),
            kernels_exclusive: Some(exclusive.len() as u64),
            total_ns_inclusive: self.total_time(inclusive),
            total_ns_exclusive: self.total_time(exclusive),
            metrics: self.rolled(inclusive, |place| apart[place].0),
            sections: self.sections(inclusive),
            kernels: self.kernels(inclusive),
            ..RegionTotals::default()
        }
    }

    /// Totals over instances of a range that were measured as a whole.
    pub(super) fn of_ranges(&self, rows: &[Row]) -> RegionTotals {
        RegionTotals {
            instances: rows.len() as u64,
            instances_exact: true,
            instance_ns: self.instance_times(rows),
            total_ns_inclusive: self.total_time(rows),
            metrics: self.rolled(rows, |_| None),
            sections: self.sections(rows),
            ..RegionTotals::default()
        }
    }

    fn rolled(&self, inclusive: &[Row], exclusive: impl Fn(usize) -> Option<f64>) -> BTreeMap<String, RolledValue> {
        let values = self.values(inclusive).into_iter().zip(&self.metrics).enumerate();
        let value = |(place, ((inclusive, missing), metric)): (usize, ((Option<f64>, u64), &MetricRule))| {
            (metric.name.clone(), RolledValue { inclusive, exclusive: exclusive(place), missing })
        };
        values.map(value).collect()
    }

    fn sections(&self, rows: &[Row]) -> Vec<types::RegionSection> {
        let mut sections = Sections::default();
        for (page, row) in rows {
            let found = &self.pages[*page];
            let work = &found.table.work[*row];
            if let Some(details) = found.details.get(&(work.id, work.process)) {
                sections.add(details, self.time((*page, *row)), self.sections);
            }
        }
        sections.finish()
    }

    /// Kernels of the rows, longest first.
    fn kernels(&self, rows: &[Row]) -> Vec<RegionKernel> {
        let mut groups: HashMap<(&str, Option<u32>), Vec<Row>> = HashMap::new();
        for row in rows {
            let work = &self.table(*row).work[row.1];
            groups.entry((&work.name, work.device)).or_default().push(*row);
        }
        let kernel = |((name, device), rows): ((&str, Option<u32>), Vec<Row>)| {
            let total_ns = self.total_time(&rows);
            RegionKernel {
                name: name.to_owned(),
                short_name: kernel::short_name(name),
                device: device.map(DeviceId::cuda),
                calls: rows.len() as u64,
                total_ns,
                mean_ns: total_ns.map(|total| Nanos::new(total.get() / rows.len() as i64)),
            }
        };
        let mut kernels: Vec<RegionKernel> = groups.into_iter().map(kernel).collect();
        kernels.sort_by(|one, two| {
            two.total_ns.cmp(&one.total_ns).then_with(|| (&one.name, &one.device).cmp(&(&two.name, &two.device)))
        });
        kernels
    }

    fn instance_times(&self, rows: &[Row]) -> Option<InstanceTimes> {
        let times: Vec<i64> =
            rows.iter().map(|row| self.time(*row).map(|time| time.round() as i64)).collect::<Option<_>>()?;
        let (min, max) = (*times.iter().min()?, *times.iter().max()?);
        let mean = times.iter().sum::<i64>() / i64::try_from(times.len()).ok()?;
        Some(InstanceTimes { min_ns: Nanos::new(min), mean_ns: Nanos::new(mean), max_ns: Nanos::new(max) })
    }
}
