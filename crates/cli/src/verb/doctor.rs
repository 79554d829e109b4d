//! `llm-perf doctor`: can we profile here, and what to do where we cannot.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Style};
use flow::calibrate::{CalibrateRequest, calibrate};
use flow::doctor::{Request, examine};
use types::{Check, DeviceCalibration, Diagnosis, Exit, UserError, Verdict};

use crate::context::Context;
use crate::message::Paint;
use crate::screen::{ScreenTable, hanging, terminal_width};
use flow::printable;

/// Check what this machine can profile, and what to install
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Measure and store the matmul and copy rates of this CPU (about 1 s), or the operation times of --device (about
    /// 1 min)
    #[arg(long)]
    calibrate: bool,
    /// Device to calibrate: cpu, cuda:N (measured with PyTorch), or the catalogue name of the device in --points
    #[arg(long, value_name = "NAME", requires = "calibrate", default_value = CPU)]
    device: String,
    /// CSV of measured operations to calibrate --device from, compressed or not; can be repeated
    #[arg(long, value_name = "FILE", requires = "calibrate")]
    points: Vec<PathBuf>,
    /// Add the operators of runs, with their shapes and device times, to the calibration of their device
    #[arg(long, value_name = "RUN", requires = "calibrate", num_args = 1.., conflicts_with_all = ["points", "device", "quick"])]
    from: Vec<OsString>,
    /// Measure for 10 s instead of 50 s
    #[arg(long, requires = "calibrate")]
    quick: bool,
    /// Python interpreter with torch, to measure cuda:N
    #[arg(long, value_name = "PROGRAM", requires = "calibrate")]
    python: Option<String>,
    /// Folder for runs
    #[arg(long, value_name = "DIR", default_value = flow::runs::DEFAULT_ROOT)]
    out_root: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The processor, whose rates are measured beside the checks.
const CPU: &str = "cpu";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    if arguments.device != CPU || !arguments.points.is_empty() || !arguments.from.is_empty() {
        return calibrate_device(arguments, context);
    }
    let request = Request {
        output_root: arguments.out_root.clone(),
        calibrate: arguments.calibrate,
        config_dir: context.config_dir.clone(),
    };
    if arguments.calibrate && cfg!(debug_assertions) {
        context.messages.warning("this is a debug build; its rates are not representative and are stored separately");
    }
    let diagnosis = examine(&request, &mut |what| context.messages.note(what))?;
    let paint = context.messages.paint_stdout();
    context.messages.print_answer(arguments.json, &diagnosis, || text(&diagnosis, paint, terminal_width()))?;
    Ok(if diagnosis.ready { Exit::Done } else { Exit::Failed })
}

/// Calibrates a device other than this processor; the machine is not examined.
fn calibrate_device(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let measures = arguments.device.starts_with("cuda");
    if arguments.points.is_empty() && arguments.from.is_empty() && !measures {
        let message = format!("--device {} requires --points; only cuda:N and cpu can be measured", arguments.device);
        return Err(UserError::usage(message).hint("use --device cuda:0 to measure the first GPU of this machine"));
    }
    let request = CalibrateRequest {
        device: arguments.device.clone(),
        points: arguments.points.clone(),
        from: arguments.from.clone(),
        root: arguments.out_root.clone(),
        quick: arguments.quick,
        python: arguments.python.clone(),
        config_dir: context.config_dir.clone(),
    };
    let stored = calibrate(&request, &mut |what| context.messages.note(what))?;
    for note in &stored.notes {
        context.messages.note(note);
    }
    context
        .messages
        .print_answer(arguments.json, &stored.calibration, || curves(&stored.calibration, terminal_width()))?;
    context.messages.note(format!("calibration: {}", stored.path.display()));
    Ok(Exit::Done)
}

/// One line per operation and element type: the curve, and its errors on points left out.
fn curves(calibration: &DeviceCalibration, width: Option<usize>) -> String {
    let mut table =
        ScreenTable::new("OP | DTYPE | >POINTS | >FLOOR US | >COMPUTE | >MEMORY | >MEDIAN ERROR | >P90 ERROR");
    for group in &calibration.groups {
        let share = |value: f64| format!("{:.0}%", value * 100.0);
        table.row([
            group.op.clone(),
            group.dtype.to_string(),
            group.points.len().to_string(),
            format!("{:.2}", group.floor_us),
            if matches!(group.columns.len(), 1 | 2) { "-".to_owned() } else { share(group.compute_efficiency) },
            share(group.memory_efficiency),
            format!("{:.1}%", group.left_out.median * 100.0),
            format!("{:.1}%", group.left_out.p90 * 100.0),
        ]);
    }
    let table = table.text(width);
    format!(
        "{table}\nErrors are on held-out points; half are held out together with every point of the same weights.\n"
    )
}

const GOOD: Style = AnsiColor::Green.on_default();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();

/// One line per check and the next step under those that need one.
fn text(diagnosis: &Diagnosis, paint: Paint, terminal: Option<usize>) -> String {
    let width = diagnosis.checks.iter().map(|check| check.title.len()).max().unwrap_or_default();
    let mut text = String::new();
    for check in &diagnosis.checks {
        let (mark, style, word) = shown(check);
        // Wrapped before it is painted: colours take no room.
        let below = |lead: &str, style: Style, said: &str| {
            let said = hanging(&format!("{lead}{}", printable(said)), width + 4, terminal);
            format!("{}{}", paint.with(style, lead.trim_end()), &said[lead.trim_end().len()..])
        };
        let lead = if word.is_empty() { String::new() } else { format!("{word}: ") };
        let found = below(&lead, style, &check.found);
        let _ = writeln!(text, "{} {:<width$}  {found}", paint.with(style, mark), check.title);
        if let Some(step) = &check.next_step {
            let _ = writeln!(text, "  {:<width$}  {}", "", below("next: ", FAINT, step));
        }
    }
    text.push('\n');
    if diagnosis.ready {
        let _ = writeln!(text, "{}", paint.with(GOOD, "The default command can run here."));
    } else {
        let missing: Vec<&str> =
            diagnosis.checks.iter().filter(|check| blocks(check)).map(|c| c.title.as_str()).collect();
        let reason = format!("The default command cannot run here: {}.", missing.join(", "));
        let _ = writeln!(text, "{}", paint.with(BAD, reason));
    }
    text
}

fn blocks(check: &Check) -> bool {
    check.required && !matches!(check.verdict, Verdict::Ok | Verdict::Warning)
}

/// Mark, colour and word of a verdict. What nothing depends on is not painted as a failure.
fn shown(check: &Check) -> (&'static str, Style, &'static str) {
    let bad = if check.required { BAD } else { DOUBTFUL };
    match check.verdict {
        Verdict::Ok => ("✓", GOOD, ""),
        Verdict::Warning => ("!", DOUBTFUL, "warning"),
        Verdict::Missing => ("✗", bad, "missing"),
        Verdict::TooOld => ("✗", bad, "too old"),
        Verdict::NotPermitted => ("✗", bad, "not permitted"),
        Verdict::Skipped => ("-", FAINT, "skipped"),
    }
}

#[cfg(test)]
mod tests {
    use types::SchemaTag;

    use super::*;
    use crate::message::{Colour, Messages, Verbosity};

    fn plain() -> Paint {
        Messages::new(Verbosity::Normal, Colour::Never).paint_stdout()
    }

    fn check(title: &str, verdict: Verdict, required: bool, next_step: Option<&str>) -> Check {
        let (id, found) = (title.to_owned(), "what was found".to_owned());
        Check { id, title: title.to_owned(), verdict, required, found, next_step: next_step.map(str::to_owned) }
    }

    fn diagnosis(output: Verdict) -> Diagnosis {
        let ready = output == Verdict::Ok;
        let checks = vec![
            check("output folder", output, true, (!ready).then_some("choose another folder")),
            check("NVIDIA driver", Verdict::Missing, false, Some("install it")),
            check("nsys", Verdict::TooOld, false, Some("install a newer one")),
            check("GPU counters", Verdict::Skipped, false, None),
            check("CPU governor", Verdict::Warning, false, Some("set it")),
        ];
        Diagnosis { schema: SchemaTag::new(), tool_version: "0.1.0".into(), ready, checks }
    }

    #[test]
    fn every_verdict_has_its_mark_and_its_next_step() {
        insta::assert_snapshot!(text(&diagnosis(Verdict::Ok), plain(), None));
    }

    #[test]
    fn what_stands_in_the_way_is_named() {
        let shown = text(&diagnosis(Verdict::NotPermitted), plain(), None);
        assert!(shown.ends_with("The default command cannot run here: output folder.\n"), "{shown}");
    }
}
