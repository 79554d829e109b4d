//! Raw and details pages of Nsight Compute: columns with units, kernels with values of the kinds that the columns have.

use super::{name, number, span};
use crate::random::Random;

/// Metrics, with the units that one page or another shows them in.
const METRICS: [(&str, &[&str]); 12] = [
    ("gpu__time_duration.sum", &["ns", "us", "ms", "second", ""]),
    ("dram__bytes_read.sum", &["byte", "Kbyte", "Mbyte", "Gbyte"]),
    ("dram__bytes_write.sum", &["byte", "Gbyte", "x"]),
    ("lts__t_bytes.sum", &["Mbyte"]),
    ("sm__throughput.avg.pct_of_peak_sustained_elapsed", &["%"]),
    ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", &["%", ""]),
    ("sm__inst_executed_pipe_tensor.sum", &["inst"]),
    ("sm__ops_path_tensor_src_bf16_dst_fp32.sum", &["", "1"]),
    ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", &["inst"]),
    ("sm__warps_active.avg.pct_of_peak_sustained_active", &["%"]),
    ("launch__grid_size", &["", "block"]),
    ("launch__registers_per_thread", &["register/thread"]),
];

/// A raw page, with what the tool prints before it.
pub(crate) fn raw(random: &mut Random) -> Vec<u8> {
    let mut page =
        if random.once_in(2) { "==PROF== Connected to process 7 (/opt/program)\n".to_owned() } else { String::new() };
    let has_ranges = random.once_in(2);
    let mut header = vec!["ID", "Process ID", "Process Name", "Host Name"];
    if has_ranges {
        header.push("thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg");
    }
    header.extend(["Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]);
    let identity = header.len();
    let metrics: Vec<(&str, &[&str])> = METRICS.iter().copied().filter(|_| !random.once_in(3)).collect();
    header.extend(metrics.iter().map(|(metric, _)| *metric));
    row(&mut page, &header);
    let units: Vec<&str> =
        vec![""; identity].into_iter().chain(metrics.iter().map(|(_, units)| *random.one_of(units))).collect();
    row(&mut page, &units);
    for kernel in 0..random.below(12) {
        let mut cells: Vec<String> = ["7", "/opt/program", "host"].map(str::to_owned).to_vec();
        cells.insert(0, kernel.to_string());
        if has_ranges {
            let range = name(random, "range");
            cells.push(format!("7  \"LLM:{range}:none:none:none:none:none:none\" "));
        }
        let shape = |random: &mut Random| format!("({}, {}, 1)", number(random), number(random));
        cells.push(name(random, "kernel").to_owned());
        cells.extend(["1".to_owned(), number(random).to_string(), shape(random), shape(random)]);
        cells.extend(["0".to_owned(), "9.0".to_owned()]);
        cells.extend(metrics.iter().map(|_| value(random)));
        row(&mut page, &cells);
    }
    page.into_bytes()
}

/// A number as the tool prints it: separated thousands, fractions, a list of instances, or why there is none.
fn value(random: &mut Random) -> String {
    let whole = number(random);
    match random.below(9) {
        0 => "n/a".to_owned(),
        1 => "(!) nan".to_owned(),
        2 => format!("{whole},{:03}.{:02}", random.below(1000), random.below(100)),
        3 => format!("{whole} ({}; {}; {})", number(random), number(random), number(random)),
        4 => format!("{whole}e{}", random.below(400)),
        5 => String::new(),
        6 => span(random, &mut 0)[1].to_string(),
        _ => format!("{whole}.{}", random.below(1_000_000)),
    }
}

fn row(page: &mut String, cells: &[impl AsRef<str>]) {
    let quoted: Vec<String> = cells.iter().map(|cell| format!("\"{}\"", cell.as_ref().replace('"', "\"\""))).collect();
    page.push_str(&quoted.join(","));
    page.push('\n');
}
