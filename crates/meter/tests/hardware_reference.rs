//! Keeps the tables of `docs/reference/hardware.md` equal to the catalogue. `UPDATE_DOCS=1` rewrites them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use llm_perf_meter::hardware::Catalogue;
use types::{ComputeUnit, DType, Hardware};

const BEGIN: &str = "<!-- begin: generated from the catalogue -->\n";
const END: &str = "<!-- end: generated from the catalogue -->\n";

#[test]
fn the_reference_page_lists_what_the_catalogue_holds() {
    let path = page_path();
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}\n{}\n{END}{after}", tables(&Catalogue::built_in().unwrap()));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
    } else if let Some((number, (is, should))) =
        page.lines().zip(expected.lines()).enumerate().find(|(_, (is, should))| is != should)
    {
        panic!(
            "docs/reference/hardware.md, line {}:\n  is     {is}\n  should {should}\n\
             rewrite it with UPDATE_DOCS=1 cargo test -p llm-perf-meter --test hardware_reference",
            number + 1
        );
    } else {
        assert_eq!(page.len(), expected.len(), "the page has lines too many or too few");
    }
}

#[test]
fn the_example_file_of_the_reference_page_is_accepted() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let catalogue = Catalogue::built_in().unwrap().with_files([("abacus-9000.yaml", example)]).unwrap();
    assert_eq!(catalogue.find("nvidia abacus 9000").unwrap().id, "abacus-9000");
}

fn page_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/hardware.md")
}

fn tables(catalogue: &Catalogue) -> String {
    let devices: Vec<&Hardware> = catalogue.devices().collect();
    let matrix = [
        DType::Fp64,
        DType::Fp32,
        DType::Tf32,
        DType::Fp16,
        DType::Bf16,
        DType::Fp8,
        DType::Fp4,
        DType::Int8,
        DType::Int4,
    ];
    let vector = [DType::Fp64, DType::Fp32, DType::Fp16, DType::Bf16];
    [
        "## Devices\n".to_owned(),
        table(
            &[
                "id",
                "driver name",
                "generation",
                "SMs",
                "boost, GHz",
                "memory, GiB",
                "bandwidth, GB/s",
                "L2, MiB",
                "link, GB/s",
            ],
            devices.iter().map(|device| device_cells(device)),
        ),
        "## Matrix units, dense TFLOP/s or TOP/s\n".to_owned(),
        rates(&devices, &matrix, ComputeUnit::Matrix),
        "## Vector units, TFLOP/s\n".to_owned(),
        rates(&devices, &vector, ComputeUnit::Vector),
        "## Sources\n".to_owned(),
        devices.iter().map(|device| sources(device)).collect(),
    ]
    .join("\n")
}

fn device_cells(device: &Hardware) -> Vec<String> {
    let capability = device.compute_capability.as_deref().map_or(String::new(), |cc| format!(" {cc}"));
    vec![
        format!("`{}`", device.id),
        device.nvml_names.join(", "),
        format!("{}{capability}", device.architecture),
        device.sm_count.to_string(),
        optional(device.boost_clock_hz.map(|hz| hz / 1e9)),
        number(device.memory_bytes.as_f64() / f64::from(1 << 30)),
        number(device.bytes_per_second.get() / 1e9),
        optional(device.l2_bytes.map(|bytes| bytes.as_f64() / f64::from(1 << 20))),
        optional(device.interconnect_bytes_per_second.map(|rate| rate.get() / 1e9)),
    ]
}

fn rates(devices: &[&Hardware], dtypes: &[DType], unit: ComputeUnit) -> String {
    let head: Vec<&str> = std::iter::once("id").chain(dtypes.iter().map(|dtype| dtype.name())).collect();
    let rows = devices.iter().map(|device| {
        let cells = dtypes.iter().map(|dtype| rate(device, *dtype, unit));
        std::iter::once(format!("`{}`", device.id)).chain(cells).collect()
    });
    table(&head, rows)
}

/// The default rate, and in parentheses the one with FP16 accumulation where it is another.
fn rate(device: &Hardware, dtype: DType, unit: ComputeUnit) -> String {
    let Some(default) = device.peak(dtype, unit) else { return "-".to_owned() };
    let other = device.peaks.iter().find(|p| (p.dtype, p.unit) == (dtype, unit) && p.flops != default.flops);
    let tera = |flops: types::FlopsPerSecond| number(flops.get() / 1e12);
    other.map_or_else(|| tera(default.flops), |other| format!("{} ({})", tera(default.flops), tera(other.flops)))
}

fn sources(device: &Hardware) -> String {
    let mut text = format!("`{}`:\n\n", device.id);
    for (key, source) in &device.sources {
        let title = match &source.url {
            Some(url) => format!("[{}]({url})", source.title),
            None => source.title.clone(),
        };
        let date = source.date.as_deref().map_or(String::new(), |date| format!(", {date}"));
        let note = source.note.as_deref().map_or(String::new(), |note| format!(": {note}"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- *{key}* {title}, {}{date}{note}", source.publisher);
    }
    text + "\n"
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

fn optional(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number)
}

/// At most three decimals, none that are zero.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
