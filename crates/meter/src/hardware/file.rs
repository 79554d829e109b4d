//! The file of one device: its form on disk, and what must hold before it is believed.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_saphyr::{MessageFormatter, UserMessageFormatter};
use types::{Bytes, BytesPerSecond, ComputeUnit, DType, Hardware, NumberSource, Peak, Source, Sourced};

use super::HardwareError;

/// A device as it is written down: every number beside the key of its source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HardwareFile {
    id: String,
    name: String,
    vendor: String,
    #[serde(default)]
    nvml_names: Vec<String>,
    architecture: String,
    compute_capability: Option<String>,
    sources: BTreeMap<String, Source>,
    memory_bytes: Sourced<Bytes>,
    bytes_per_second: Sourced<BytesPerSecond>,
    l2_bytes: Option<Sourced<Bytes>>,
    sm_count: Sourced<u32>,
    boost_clock_hz: Option<Sourced<f64>>,
    power_watts: Option<Sourced<f64>>,
    interconnect_bytes_per_second: Option<Sourced<BytesPerSecond>>,
    peaks: Vec<Peak>,
}

/// Reads and checks the text of one device file.
pub(crate) fn read(file: &str, text: &str) -> Result<Hardware, HardwareError> {
    let described: HardwareFile = serde_saphyr::from_str(text).map_err(|error| wrong_form(file, text, &error))?;
    check_names(file, &described)?;
    let hardware = collect(file, described)?;
    check_peaks(file, &hardware)?;
    Ok(hardware)
}

/// The reader's complaint with the place it is about: `file:line:column`, the line itself and a caret.
fn wrong_form(file: &str, text: &str, error: &serde_saphyr::Error) -> HardwareError {
    let message = match error.without_snippet() {
        serde_saphyr::Error::InvalidScalar { ty, .. } if ty.starts_with('u') => "expected a whole number".into(),
        other => UserMessageFormatter.format_message(other),
    };
    let place = error.location().and_then(|at| {
        let line = text.lines().nth(usize::try_from(at.line()).ok()?.checked_sub(1)?)?;
        let indent = usize::try_from(at.column()).ok()?.checked_sub(1)?;
        Some((format!("{}:{}", at.line(), at.column()), line, indent))
    });
    let message = match place {
        Some((place, line, indent)) => format!("{file}:{place}: {message}\n  | {line}\n  | {:indent$}^", ""),
        None => format!("{file}: {message}"),
    };
    HardwareError::file(message)
}

/// Takes the numbers from their wrappers, checking each on the way.
fn collect(file: &str, described: HardwareFile) -> Result<Hardware, HardwareError> {
    let HardwareFile { sources, peaks, .. } = described;
    let mut numbers = Numbers { file, sources: &sources, number_sources: BTreeMap::new() };
    let memory_bytes = numbers.take("memory_bytes", described.memory_bytes, |bytes| bytes.as_f64())?;
    let bytes_per_second = numbers.take("bytes_per_second", described.bytes_per_second, |rate| rate.get())?;
    let l2_bytes = described.l2_bytes.map(|n| numbers.take("l2_bytes", n, |bytes| bytes.as_f64())).transpose()?;
    let sm_count = numbers.take("sm_count", described.sm_count, |count| f64::from(*count))?;
    let boost_clock_hz = described.boost_clock_hz.map(|n| numbers.take("boost_clock_hz", n, |hz| *hz)).transpose()?;
    let power_watts = described.power_watts.map(|n| numbers.take("power_watts", n, |watts| *watts)).transpose()?;
    let interconnect_bytes_per_second = described
        .interconnect_bytes_per_second
        .map(|n| numbers.take("interconnect_bytes_per_second", n, |rate| rate.get()))
        .transpose()?;
    Ok(Hardware {
        id: described.id,
        name: described.name,
        vendor: described.vendor,
        nvml_names: described.nvml_names,
        architecture: described.architecture,
        compute_capability: described.compute_capability,
        memory_bytes,
        bytes_per_second,
        l2_bytes,
        sm_count,
        boost_clock_hz,
        power_watts,
        interconnect_bytes_per_second,
        peaks,
        number_sources: numbers.number_sources,
        sources,
    })
}

/// The numbers of one file on their way out of it.
struct Numbers<'a> {
    file: &'a str,
    sources: &'a BTreeMap<String, Source>,
    number_sources: BTreeMap<String, NumberSource>,
}

impl Numbers<'_> {
    fn take<T>(&mut self, field: &str, number: Sourced<T>, plain: impl Fn(&T) -> f64) -> Result<T, HardwareError> {
        check_positive(self.file, field, plain(&number.value))?;
        check_source(self.file, field, &number.source, self.sources)?;
        let source = NumberSource { source: number.source, note: number.note };
        self.number_sources.insert(field.to_owned(), source);
        Ok(number.value)
    }
}

fn check_names(file: &str, described: &HardwareFile) -> Result<(), HardwareError> {
    let id = &described.id;
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        return Err(wrong(file, "id", &format!("`{id}`"), "lower-case letters, digits and dashes"));
    }
    let texts = [("name", &described.name), ("vendor", &described.vendor), ("architecture", &described.architecture)];
    let driver_names = described.nvml_names.iter().map(|name| ("nvml_names", name));
    match texts.into_iter().chain(driver_names).find(|(_, text)| text.trim().is_empty()) {
        Some((field, text)) => Err(wrong(file, field, &format!("`{text}`"), "a name")),
        None => Ok(()),
    }
}

fn check_peaks(file: &str, hardware: &Hardware) -> Result<(), HardwareError> {
    if hardware.peaks.is_empty() {
        return Err(wrong(file, "peaks", "empty", "at least one rate"));
    }
    let mut seen = HashSet::new();
    for (index, peak) in hardware.peaks.iter().enumerate() {
        check_positive(file, &format!("peaks[{index}].flops"), peak.flops.get())?;
        check_source(file, &format!("peaks[{index}].source"), &peak.source, &hardware.sources)?;
        if !seen.insert((peak.dtype, peak.unit, peak.accumulate)) {
            let unit = if peak.unit == ComputeUnit::Matrix { "matrix" } else { "vector" };
            let (dtype, sums) = (peak.dtype, peak.accumulate.map_or("no", DType::name));
            let message = format!("{file}: `peaks` lists the {unit} rate for {dtype} with {sums} accumulation twice");
            return Err(HardwareError::file(message));
        }
    }
    Ok(())
}

fn check_positive(file: &str, field: &str, value: f64) -> Result<(), HardwareError> {
    let is_right = value.is_finite() && value > 0.0;
    is_right.then_some(()).ok_or_else(|| wrong(file, field, &value.to_string(), "a positive number"))
}

fn check_source(file: &str, field: &str, key: &str, sources: &BTreeMap<String, Source>) -> Result<(), HardwareError> {
    sources.contains_key(key).then_some(()).ok_or_else(|| {
        let known: Vec<&str> = sources.keys().map(String::as_str).collect();
        let known = known.join(", ");
        HardwareError::file(format!(
            "{file}: `{field}` names the source `{key}`, which `sources` does not list; it has {known}"
        ))
    })
}

fn wrong(file: &str, field: &str, got: &str, expected: &str) -> HardwareError {
    HardwareError::file(format!("{file}: `{field}` is {got}, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
id: abacus
name: Abacus
vendor: V
architecture: Beads
sources:
  sheet: {title: T, publisher: P}
memory_bytes: {value: 10, source: sheet}
bytes_per_second: {value: 1e9, source: sheet, note: counted by hand}
sm_count: {value: 2, source: sheet}
peaks:
  - {dtype: fp32, unit: vector, accumulate: fp32, flops: 1e9, source: sheet}
";

    fn refusal(good: &str, bad: &str) -> String {
        assert!(GOOD.contains(good), "{good}");
        read("abacus.yaml", &GOOD.replace(good, bad)).unwrap_err().to_string()
    }

    #[test]
    fn a_number_keeps_its_source_and_what_is_not_said_stays_unknown() {
        let device = read("abacus.yaml", GOOD).unwrap();
        let source = &device.number_sources["bytes_per_second"];
        assert_eq!((source.source.as_str(), source.note.as_deref()), ("sheet", Some("counted by hand")));
        assert_eq!((device.l2_bytes, device.boost_clock_hz, device.compute_capability), (None, None, None));
        assert_eq!(device.number_sources.len(), 3);
    }

    #[test]
    fn every_refusal_names_the_file_and_the_field() {
        let cases = [
            ("id: abacus", "id: My Abacus"),
            ("name: Abacus", "name: ''"),
            ("value: 10,", "value: 0,"),
            ("value: 1e9, source: sheet,", "value: .inf, source: sheet,"),
            ("value: 2, source: sheet", "value: 2, source: shet"),
            ("flops: 1e9, source: sheet", "flops: -1, source: sheet"),
            ("flops: 1e9, source: sheet", "flops: 1e9, source: rumour"),
            ("  - {dtype", "  - {dtype: fp32, unit: vector, accumulate: fp32, flops: 2, source: sheet}\n  - {dtype"),
            ("peaks:\n  - {dtype: fp32, unit: vector, accumulate: fp32, flops: 1e9, source: sheet}", "peaks: []"),
        ];
        let refusals: Vec<String> = cases.iter().map(|(good, bad)| refusal(good, bad)).collect();
        insta::assert_snapshot!(refusals.join("\n"));
    }

    #[test]
    fn a_file_of_the_wrong_form_is_refused_with_its_line() {
        let cases = [
            ("sm_count: {value: 2, source: sheet}\n", ""),
            ("sm_count", "sm_cuont"),
            ("dtype: fp32", "dtype: fp31"),
            ("value: 2,", "value: two,"),
            ("value: 10,", "value: -10,"),
            ("sources:\n", "sources: [\n"),
            ("vendor: V\n", "vendor: V\nvendor: W\n"),
        ];
        let refusals: Vec<String> = cases.iter().map(|(good, bad)| refusal(good, bad)).collect();
        insta::assert_snapshot!(refusals.join("\n---\n"));
    }

    #[test]
    fn an_empty_file_is_refused() {
        assert!(read("empty.yaml", "").unwrap_err().to_string().starts_with("empty.yaml: "));
    }
}
