//! `llm-perf hardware`: which devices are known, and the source of every number of one.

use std::fmt::Write as _;
use std::path::PathBuf;

use flow::hardware::{find, list};
use types::{ComputeUnit, DType, Exit, Hardware, HardwareListing, Peak, SchemaTag, UserError};

use crate::context::Context;
use crate::screen::{ScreenTable, hanging, terminal_width};
use flow::printable;

/// List the known devices, or show one with its sources
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Device id, name or driver name; `cpu` is the CPU of this machine
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Predict the time of each operation in a CSV from the calibration of the device (see `doctor --calibrate`)
    #[arg(long, value_name = "FILE", requires = "name", conflicts_with = "json")]
    predict: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let config_dir = context.config_dir.as_deref();
    let messages = &context.messages;
    if let (Some(name), Some(shapes)) = (&arguments.name, &arguments.predict) {
        return messages.print(&flow::predict::predict(config_dir, name, shapes)?);
    }
    match &arguments.name {
        Some(name) => {
            let listing = HardwareListing { schema: SchemaTag::new(), devices: vec![find(config_dir, name)?] };
            messages.print_answer(arguments.json, &listing, || {
                listing.devices.iter().map(|device| detail(device, terminal_width())).collect()
            })?;
        }
        None => {
            let devices = list(config_dir)?;
            messages.print_answer(arguments.json, &devices.listing, || {
                overview(&devices.listing.devices, terminal_width())
            })?;
            if let Some(note) = devices.note {
                messages.note(note);
            }
        }
    }
    Ok(Exit::Done)
}

/// One line per device, with the peak rates that matter to most models.
fn overview(devices: &[Hardware], width: Option<usize>) -> String {
    let rate = |device: &Hardware, dtype, unit| device.peak(dtype, unit).map_or_else(|| "-".to_owned(), shown_rate);
    let mut table = ScreenTable::new("ID | NAME | >MEMORY | >BANDWIDTH | >BF16 MATRIX | >FP16 MATRIX | >FP32 VECTOR");
    for device in devices {
        table.row([
            device.id.clone(),
            device.name.clone(),
            device.memory_bytes.to_string(),
            device.bytes_per_second.to_string(),
            rate(device, DType::Bf16, ComputeUnit::Matrix),
            rate(device, DType::Fp16, ComputeUnit::Matrix),
            rate(device, DType::Fp32, ComputeUnit::Vector),
        ]);
    }
    table.text(width)
}

/// Every number of a device, the key of its source and what its file notes on it.
fn detail(device: &Hardware, width: Option<usize>) -> String {
    let mut text = format!("{}  {}\n\n", printable(&device.id), printable(&device.name));
    let parts = [about(device), numbers(device), peaks(device)];
    for part in parts {
        let _ = writeln!(text, "{}", part.text(width));
    }
    text.push_str("Sources\n");
    for (key, source) in &device.sources {
        let date = source.date.as_ref().map(|date| format!(", {date}")).unwrap_or_default();
        let line = format!("[{key}] {}, {}{date}", source.title, source.publisher);
        for line in [&line].into_iter().chain(&source.url).chain(&source.note) {
            let indent = if line.starts_with('[') { "" } else { "  " };
            let _ = writeln!(text, "{indent}{}", hanging(&printable(line), indent.len(), width));
        }
    }
    text
}

fn about(device: &Hardware) -> ScreenTable {
    let mut table = ScreenTable::default();
    table.row(["vendor", &device.vendor]);
    let capability = device.compute_capability.as_ref().map(|number| format!(", compute capability {number}"));
    table.row(["architecture", &format!("{}{}", device.architecture, capability.unwrap_or_default())]);
    if !device.nvml_names.is_empty() {
        table.row(["driver names", &device.nvml_names.join(", ")]);
    }
    table
}

fn numbers(device: &Hardware) -> ScreenTable {
    let is_gpu = !device.nvml_names.is_empty() || device.compute_capability.is_some();
    let interconnect = device.interconnect_bytes_per_second;
    let numbers = [
        ("memory_bytes", "memory", Some(device.memory_bytes.to_string())),
        ("bytes_per_second", "bandwidth", Some(device.bytes_per_second.to_string())),
        ("l2_bytes", "L2 cache", device.l2_bytes.map(|bytes| bytes.to_string())),
        ("sm_count", if is_gpu { "SMs" } else { "threads" }, Some(device.sm_count.to_string())),
        ("boost_clock_hz", "boost clock", device.boost_clock_hz.map(|clock| format!("{:.3} GHz", clock / 1e9))),
        ("power_watts", "power limit", device.power_watts.map(|watts| format!("{watts:.0} W"))),
        ("interconnect_bytes_per_second", "interconnect", interconnect.map(|rate| rate.to_string())),
    ];
    let mut table = ScreenTable::new(" | > | ");
    for (key, name, value) in numbers {
        let Some(value) = value else { continue };
        let source = device.number_sources.get(key);
        let origin = source.map_or_else(String::new, |number| origin(&number.source, number.note.as_deref()));
        table.row([name, &value, &origin]);
    }
    table
}

fn peaks(device: &Hardware) -> ScreenTable {
    let mut table = ScreenTable::new("UNIT | DTYPE | ACCUMULATE | >DENSE PEAK | SOURCE");
    for peak in &device.peaks {
        let accumulate = peak.accumulate.map_or("-", DType::name);
        table.row([
            peak.unit.name(),
            peak.dtype.name(),
            accumulate,
            &shown_rate(peak),
            &origin(&peak.source, peak.note.as_deref()),
        ]);
    }
    table
}

fn origin(source: &str, note: Option<&str>) -> String {
    note.map_or_else(|| format!("[{source}]"), |note| format!("[{source}] {note}"))
}

/// A rate in the unit people use: whole numbers are not floating-point operations.
fn shown_rate(peak: &Peak) -> String {
    let text = peak.flops.to_string();
    let is_float = matches!(
        peak.dtype,
        DType::Fp64 | DType::Fp32 | DType::Tf32 | DType::Fp16 | DType::Bf16 | DType::Fp8 | DType::Fp4
    );
    if is_float { text } else { text.replace("FLOP/s", "OP/s") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::{Bytes, BytesPerSecond, FlopsPerSecond, NumberSource, Source};

    use super::*;

    fn device() -> Hardware {
        let source = Source {
            title: "A datasheet".into(),
            publisher: "A vendor".into(),
            date: Some("2025".into()),
            url: Some("https://example.com".into()),
            note: Some("a note on the whole document".into()),
        };
        let peak = |dtype, unit, flops, note: Option<&str>| Peak {
            dtype,
            unit,
            accumulate: Some(DType::Fp32),
            flops: FlopsPerSecond::new(flops),
            source: "datasheet".into(),
            note: note.map(str::to_owned),
        };
        Hardware {
            id: "x1".into(),
            name: "X One".into(),
            vendor: "A vendor".into(),
            nvml_names: vec!["A vendor X1".into(), "X1".into()],
            architecture: "Ex".into(),
            compute_capability: Some("9.0".into()),
            memory_bytes: Bytes::new(80_000_000_000),
            bytes_per_second: BytesPerSecond::new(3.35e12),
            l2_bytes: None,
            sm_count: 132,
            boost_clock_hz: Some(1.98e9),
            power_watts: None,
            interconnect_bytes_per_second: None,
            peaks: vec![
                peak(DType::Bf16, ComputeUnit::Matrix, 989.5e12, Some("1,979 with sparsity, halved")),
                peak(DType::Int8, ComputeUnit::Matrix, 1979e12, None),
            ],
            number_sources: BTreeMap::from([(
                "sm_count".to_owned(),
                NumberSource { source: "datasheet".into(), note: None },
            )]),
            sources: BTreeMap::from([("datasheet".to_owned(), source)]),
        }
    }

    #[test]
    fn the_overview_shows_what_is_not_known_as_a_dash() {
        insta::assert_snapshot!(overview(&[device()], None));
    }

    #[test]
    fn the_detail_shows_every_number_with_its_source() {
        insta::assert_snapshot!(detail(&device(), None));
    }
}
