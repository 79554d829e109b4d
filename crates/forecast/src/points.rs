//! Tables of measured operations, and of shapes to predict: comma-separated values with a header.

use types::{DType, Hardware};

use crate::{Family, ForecastError, OpShape};

/// A rate this much above the peak is a wrong unit or a wrong device; less may be a clock above the datasheet's.
const ABOVE_PEAK: f64 = 1.05;

/// Traffic faster than memory is possible while everything stays in the cache; not for tensors so many times its size.
const CACHES: f64 = 4.0;

/// One measured operation.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// What was measured.
    pub shape: OpShape,
    /// Its time.
    pub microseconds: f64,
}

/// A table of shapes, with its text to print again.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names of the columns, those of times left out.
    pub header: Vec<String>,
    /// Cells of each row under `header`, and the shape they say.
    pub rows: Vec<(Vec<String>, OpShape)>,
}

/// Columns that an estimate fills.
const ANSWERS: [&str; 4] = ["microseconds", "low", "high", "basis"];

struct Reader<'a> {
    file: &'a str,
    header: Vec<&'a str>,
}

/// Reads points measured on `hardware` from the text of `file`.
pub fn read_points(file: &str, text: &str, hardware: &Hardware) -> Result<Vec<MeasuredPoint>, ForecastError> {
    let mut points = Vec::new();
    let mut device: Option<&str> = None;
    let reader = Reader::new(file, text)?;
    if !reader.header.contains(&"microseconds") {
        let reason = format!("missing column `microseconds`; found {}", reader.header.join(", "));
        return Err(reader.wrong(1, reason, "add a column `microseconds` with the times in microseconds"));
    }
    for (line, cells) in reader.rows(text) {
        let cells = cells?;
        let shape = reader.shape(line, &cells)?;
        let cell = reader.cell(&cells, "microseconds").unwrap_or_default();
        let microseconds = match cell.parse::<f64>() {
            Ok(time) if time.is_finite() && time > 0.0 => time,
            _ => {
                let reason = format!("microseconds is `{cell}`; expected a positive number");
                return Err(reader.wrong(line, reason, "delete the row, or measure the point again"));
            }
        };
        if let Some(named) = reader.cell(&cells, "device").filter(|named| !named.is_empty()) {
            reader.same_device(line, device.replace(named), named, hardware)?;
        }
        reader.possible(line, &shape, microseconds, hardware)?;
        points.push(MeasuredPoint { shape, microseconds });
    }
    if points.is_empty() {
        return Err(reader.wrong(2, "the table has no rows".to_owned(), "add at least one row below the header"));
    }
    Ok(points)
}

/// Reads shapes to predict from the text of `file`.
pub fn read_shapes(file: &str, text: &str) -> Result<Table, ForecastError> {
    let reader = Reader::new(file, text)?;
    let kept: Vec<usize> = (0..reader.header.len()).filter(|index| !ANSWERS.contains(&reader.header[*index])).collect();
    let mut rows = Vec::new();
    for (line, cells) in reader.rows(text) {
        let cells = cells?;
        let shape = reader.shape(line, &cells)?;
        rows.push((kept.iter().map(|index| cells[*index].to_owned()).collect(), shape));
    }
    Ok(Table { header: kept.iter().map(|index| reader.header[*index].to_owned()).collect(), rows })
}

impl<'a> Reader<'a> {
    fn new(file: &'a str, text: &'a str) -> Result<Self, ForecastError> {
        let first = text.lines().next().unwrap_or_default().trim_start_matches('\u{feff}');
        let header: Vec<&str> = first.split(',').map(str::trim).collect();
        let reader = Self { file, header };
        if reader.header == [""] {
            return Err(reader.wrong(1, "the file is empty".to_owned(), "name the columns in the first line"));
        }
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = reader.header.iter().find(|name| !seen.insert(**name)) {
            let reason = format!("duplicate column `{twice}`");
            return Err(reader.wrong(1, reason, "remove one of them"));
        }
        Ok(reader)
    }

    /// Line numbers and cells; empty lines are left out.
    fn rows(&self, text: &'a str) -> impl Iterator<Item = (u64, Result<Vec<&'a str>, ForecastError>)> {
        let lines = text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty());
        lines.map(move |(index, line)| {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            let number = index as u64 + 1;
            if cells.len() == self.header.len() {
                return (number, Ok(cells));
            }
            let reason = format!("{} cells for {} columns", cells.len(), self.header.len());
            (number, Err(self.wrong(number, reason, "give every row one cell per column; cells cannot contain commas")))
        })
    }

    fn cell(&self, cells: &[&'a str], name: &str) -> Option<&'a str> {
        self.header.iter().position(|column| *column == name).map(|index| cells[index])
    }

    fn shape(&self, line: u64, cells: &[&'a str]) -> Result<OpShape, ForecastError> {
        let family = self.family(line, cells)?;
        let dtype = match (self.dtype(line, cells, "dtype")?, family) {
            (Some(dtype), _) => dtype,
            (None, Family::Gemm | Family::GroupedGemm) => {
                let fix = "add a column `dtype`, such as bf16";
                return Err(self.wrong(line, "the element type is missing".to_owned(), fix));
            }
            (None, _) => DType::Bf16,
        };
        let mut sizes = Vec::new();
        for column in family.columns() {
            let size = match *column {
                "kv_dtype" => self.dtype(line, cells, column)?.unwrap_or(dtype).bits() as f64,
                column => self.size(line, cells, column)?,
            };
            sizes.push(size);
        }
        let sized = |name: &str| family.columns().iter().position(|column| *column == name).map(|index| sizes[index]);
        if let (Some(heads), Some(kv_heads)) = (sized("heads"), sized("kv_heads"))
            && kv_heads > heads
        {
            let reason = format!("{kv_heads} key-value heads exceed {heads} heads");
            return Err(self.wrong(line, reason, "`heads` is the number of query heads"));
        }
        Ok(OpShape { family, dtype, sizes })
    }

    /// By the column `op`, or by the columns there are.
    fn family(&self, line: u64, cells: &[&'a str]) -> Result<Family, ForecastError> {
        if let Some(name) = self.cell(cells, "op") {
            return Family::find(name).ok_or_else(|| {
                let known = Family::ALL.map(Family::name).join(", ");
                self.wrong(line, format!("unknown operation `{name}`"), &format!("use one of {known}"))
            });
        }
        let has = |family: &Family| {
            let optional = ["kv_dtype", "window"];
            family.columns().iter().all(|column| optional.contains(column) || self.header.contains(column))
        };
        // A table with `experts` is of grouped GEMMs, though it has the columns of plain ones.
        let order = [Family::GroupedGemm, Family::Gemm, Family::GenerationAttention, Family::ContextAttention];
        order.into_iter().find(has).ok_or_else(|| {
            let reason = format!("the columns {} match no operation", self.header.join(", "));
            self.wrong(1, reason, "add a column `op`, or name the sizes: m,n,k for a GEMM; batch,length,heads,kv_heads,head_dim for attention")
        })
    }

    fn dtype(&self, line: u64, cells: &[&'a str], column: &str) -> Result<Option<DType>, ForecastError> {
        match self.cell(cells, column) {
            None | Some("") => Ok(None),
            Some(name) => {
                // What tables call fp8_block or float8 is stored in eight bits all the same.
                let plain = if name.starts_with("fp8") || name.starts_with("float8") { "fp8" } else { name };
                plain.parse().map(Some).map_err(|error: types::UnknownDType| {
                    self.wrong(line, error.to_string(), "use one of these element types")
                })
            }
        }
    }

    fn size(&self, line: u64, cells: &[&'a str], column: &str) -> Result<f64, ForecastError> {
        let optional = column == "window";
        let Some(cell) = self.cell(cells, column) else {
            if optional {
                return Ok(0.0);
            }
            return Err(self.wrong(
                line,
                format!("missing column `{column}`"),
                "add the column; every size is required",
            ));
        };
        let least = if optional { 0.0 } else { 1.0 };
        match cell.parse::<f64>() {
            Ok(size) if size >= least && size.fract() == 0.0 && size < 1e15 => Ok(size),
            _ if optional && cell.is_empty() => Ok(0.0),
            _ => {
                let reason = format!("{column} is `{cell}`; expected a whole number of at least {least}");
                Err(self.wrong(line, reason, "correct the size, or delete the row"))
            }
        }
    }

    fn same_device(
        &self,
        line: u64,
        before: Option<&str>,
        named: &str,
        hardware: &Hardware,
    ) -> Result<(), ForecastError> {
        if let Some(before) = before.filter(|before| *before != named) {
            let reason = format!(
                "the device is `{named}`, but `{before}` in earlier rows; points of two devices do not make a curve"
            );
            return Err(self.wrong(line, reason, "use one file per device"));
        }
        let names = hardware.nvml_names.iter().chain([&hardware.id, &hardware.name]);
        if names.into_iter().any(|name| name.eq_ignore_ascii_case(named)) {
            return Ok(());
        }
        let reason = format!("the point was measured on `{named}`, but the calibration is for {}", hardware.id);
        Err(self.wrong(line, reason, "pass that device with --device"))
    }

    fn possible(&self, line: u64, shape: &OpShape, time: f64, hardware: &Hardware) -> Result<(), ForecastError> {
        let fix = "check the unit (microseconds, not milliseconds) and the device (--device); if both are right, \
                   delete the row";
        match impossible(shape, time, hardware)? {
            Some(reason) => Err(self.wrong(line, reason, fix)),
            None => Ok(()),
        }
    }

    fn wrong(&self, line: u64, reason: String, fix: &str) -> ForecastError {
        ForecastError::Row { file: self.file.to_owned(), line, reason, fix: fix.to_owned() }
    }
}

/// Why `shape` cannot take so many microseconds on `hardware`; `None` where it can.
pub(crate) fn impossible(shape: &OpShape, time: f64, hardware: &Hardware) -> Result<Option<String>, ForecastError> {
    let work = shape.work(hardware)?;
    // The peaks of a processor were measured themselves: another run may pass them.
    if hardware.nvml_names.is_empty() && hardware.compute_capability.is_none() {
        return Ok(None);
    }
    if let Some(peak) = hardware.matrix_peak(shape.dtype) {
        let (rate, peak) = (shape.flops() / time * 1e6, peak.flops.get());
        if rate > peak * ABOVE_PEAK {
            return Ok(Some(format!(
                "{time} microseconds would be {:.0} TFLOP/s, but the {} peak of {} is {:.0}",
                rate / 1e12,
                shape.dtype,
                hardware.id,
                peak / 1e12
            )));
        }
    }
    let cached = hardware.l2_bytes.map_or(f64::INFINITY, |bytes| CACHES * bytes.as_f64());
    let (rate, peak) = (work.bytes / time * 1e6, hardware.bytes_per_second.get());
    // What is read again from the cache makes the memory look faster; three times faster it cannot.
    let too_fast = shape.family.in_memory() && work.bytes > cached && rate > 3.0 * peak;
    Ok(too_fast.then(|| {
        format!(
            "{time} microseconds would be {:.1} TB/s, but the bandwidth of {} is {:.1}",
            rate / 1e12,
            hardware.id,
            peak / 1e12
        )
    }))
}
