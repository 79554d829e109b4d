//! Memory of each device over a trace.

use types::view::RunView;
use types::{DeviceMemory, StepMemory};

use crate::render::Page;
use crate::render::Table;
use crate::render::text::code;
use crate::words::number::{count, grouped, known};

/// Steps shown.
const STEPS: usize = 20;

/// The section of a report; nothing where no allocator reported its totals.
pub(super) fn section(page: &mut Page, run: &RunView<'_>) {
    let devices = &run.metrics.breakdown.device_memory;
    if devices.is_empty() {
        return;
    }
    page.heading("Device memory (counted)");
    page.list(devices.iter().map(sentence));
    let mut table = Table::new("device | step | >peak allocated | >peak reserved | >growth");
    for memory in devices {
        for step in memory.by_step.iter().take(STEPS) {
            table.row([
                memory.device.to_string(),
                code(&step.step),
                step.peak_allocated_bytes.to_string(),
                known(step.peak_reserved_bytes),
                growth(step),
            ]);
        }
    }
    if !table.is_empty() {
        page.table(&table);
        page.paragraph(
            "A step covers its host time, when its memory is allocated. Growth is the memory held by tensors at its end, minus that at its \
             start.",
        );
    }
    let more: usize = devices.iter().map(|memory| memory.by_step.len().saturating_sub(STEPS)).sum();
    if more > 0 {
        page.paragraph(&format!("{} more are in `metrics.json`.", grouped(more as u64)));
    }
}

/// `cuda:0: tensors held 5.60 GB before the first recorded allocation and peaked at 5.65 GB, 12 ms later; ...`
fn sentence(memory: &DeviceMemory) -> String {
    let mut text = format!(
        "{}{}: tensors held {} before the first recorded allocation and peaked at {}, {} later",
        memory.device,
        in_process(memory),
        known(memory.start_allocated_bytes),
        known(memory.peak_allocated_bytes),
        known(memory.peak_at_ns),
    );
    if let Some(reserved) = memory.peak_reserved_bytes {
        text += &format!("; the framework reserved up to {reserved}");
    }
    text + &format!(" ({})", count(memory.allocations, "allocation"))
}

/// What the process calls the device, where that is another name than that of the kernels' device.
fn in_process(memory: &DeviceMemory) -> String {
    match &memory.in_process {
        Some(own) if *own != memory.device => format!(" ({own} in the process)"),
        Some(_) => " in the process".to_owned(),
        None => String::new(),
    }
}

fn growth(step: &StepMemory) -> String {
    let amount = types::Bytes::new(step.growth_bytes.unsigned_abs());
    match step.growth_bytes {
        0 => "none".to_owned(),
        ..0 => format!("-{amount}"),
        _ => format!("+{amount}"),
    }
}
