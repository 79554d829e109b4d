//! `llm-perf whatif`: the time of a run under changes.

use std::ffi::OsString;
use std::path::PathBuf;

use flow::whatif::{self, Change, CopyFate, Family, Pace, WhatIfRequest};
use types::{Exit, Named, UserError};

use crate::context::Context;

/// Predict how changes would affect the time of a run
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run (its name or a prefix of it, `latest`, or its folder), or trace files, one per rank
    #[arg(value_name = "RUN|FILE", required = true)]
    subject: Vec<OsString>,
    /// Launch each step or stage as one CUDA graph
    #[arg(long)]
    cuda_graphs: bool,
    /// Fuse chains of kernels of this kind
    #[arg(long, value_name = "KIND", value_enum)]
    fuse: Option<Fusion>,
    /// Speed up a family of kernels, such as gemm=roofline or gemm=2x; can be repeated
    #[arg(long, value_name = "FAMILY=SPEED", value_parser = kernels)]
    kernels: Vec<(Family, Pace)>,
    /// Overlap host-device copies with kernels (hidden), or remove them (removed)
    #[arg(long, value_name = "HOW", value_enum)]
    copies: Option<Fate>,
    /// Overlap communication with compute (hidden)
    #[arg(long, value_name = "HOW", value_enum)]
    communication: Option<Overlap>,
    /// Speed up the host, such as 2x
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    host: Option<f64>,
    /// Run on another device, such as b200; each kernel scales with the rate that limits it
    #[arg(long, value_name = "NAME")]
    hardware: Option<String>,
    /// Device on which the trace was recorded [default: read from the trace]
    #[arg(long, value_name = "NAME")]
    recorded_on: Option<String>,
    /// Folder that contains the runs
    #[arg(long, value_name = "DIR", default_value = flow::runs::DEFAULT_ROOT)]
    root: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What can be fused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Fusion {
    Elementwise,
}

/// What becomes of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Fate {
    Hidden,
    Removed,
}

/// What becomes of communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Overlap {
    Hidden,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let request = WhatIfRequest {
        subject: arguments.subject.clone(),
        root: arguments.root.clone(),
        changes: changes(arguments),
        hardware: arguments.hardware.clone(),
        recorded_on: arguments.recorded_on.clone(),
        config_dir: context.config_dir.clone(),
    };
    let answer = context.telling(|tell| whatif::what_if(&request, tell))?;
    context.messages.print_answer(arguments.json, &answer, || whatif::terminal(&answer))
}

/// Changes in the words in which they were asked for.
fn changes(arguments: &Arguments) -> Vec<(String, Change)> {
    let mut changes = Vec::new();
    if arguments.cuda_graphs {
        changes.push(("--cuda-graphs".to_owned(), Change::CudaGraphs));
    }
    if let Some(Fusion::Elementwise) = arguments.fuse {
        changes.push(("--fuse elementwise".to_owned(), Change::FusedElementwise));
    }
    for (family, pace) in &arguments.kernels {
        let asked = match pace {
            Pace::Times(times) => format!("{times}x"),
            Pace::Roofline => "roofline".to_owned(),
        };
        changes.push((format!("--kernels {}={asked}", family.name()), Change::Kernels(*family, *pace)));
    }
    match arguments.copies {
        Some(Fate::Hidden) => changes.push(("--copies hidden".to_owned(), Change::Copies(None, CopyFate::Hidden))),
        Some(Fate::Removed) => changes.push(("--copies removed".to_owned(), Change::Copies(None, CopyFate::Removed))),
        None => {}
    }
    if let Some(Overlap::Hidden) = arguments.communication {
        changes.push(("--communication hidden".to_owned(), Change::HiddenCommunication));
    }
    if let Some(times) = arguments.host {
        changes.push((format!("--host {times}x"), Change::Host(times)));
    }
    changes
}

/// `2x` as 2.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("expected a factor, such as 2x or 1.5x".to_owned()),
    }
}

/// `gemm=roofline` or `gemm=2x`.
fn kernels(text: &str) -> Result<(Family, Pace), String> {
    let (family, pace) = text.split_once('=').ok_or("expected FAMILY=roofline or FAMILY=2x")?;
    let unknown = || format!("unknown kernel family; expected one of {}", Family::ALL.map(Family::name).join(", "));
    let family = Family::find(family).ok_or_else(unknown)?;
    let pace = match pace {
        "roofline" => Pace::Roofline,
        pace => Pace::Times(factor(pace)?),
    };
    Ok((family, pace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_a_positive_number_with_an_x() {
        assert_eq!((factor("2x"), factor("1.5 x")), (Ok(2.0), Ok(1.5)));
        for nonsense in ["2", "x", "0x", "-1x", "NaNx", "infx", "fastx"] {
            assert!(factor(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn kernels_are_a_family_and_a_pace() {
        assert_eq!(kernels("gemm=roofline"), Ok((Family::Gemm, Pace::Roofline)));
        assert_eq!(kernels("moe=2x"), Ok((Family::Experts, Pace::Times(2.0))));
        assert!(kernels("gemms=2x").unwrap_err().contains("attention"));
        assert!(kernels("gemm").is_err() && kernels("gemm=fast").is_err());
    }
}
