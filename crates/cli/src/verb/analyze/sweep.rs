//! `llm-perf analyze --sweep`: the grid of settings from the command line, and what is shown of it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use flow::model::LoadedModel;
use flow::sweep::{self, SweepError, SweepSettings, Watch};
use flow::{RunRequest, WorkloadSettings};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value};
use types::{Exit, Sweep, SweepAxis};

use super::{Arguments, devices};
use crate::arguments::Context;
use crate::config::Config;
use crate::error::CliError;
use crate::verb::profile::stop_on_interrupt;

pub(super) fn run(
    arguments: &Arguments,
    context: &Context,
    config: &Config,
    model: &LoadedModel,
) -> Result<Exit, CliError> {
    let settings = SweepSettings {
        workload: workload(config)?,
        axes: arguments.sweep.iter().map(|text| axis(config, text)).collect::<Result<_, _>>()?,
        devices: devices(arguments, config)?,
        config_dir: context.config_dir.clone(),
        launch_us: arguments.launch_us,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let plan = sweep::plan(model, &settings)?;
    let stopped = stop_on_interrupt();
    let bar = bar(context, plan.points());
    let watch = Watch { done: &|points| bar.inc(points), stop: &|| stopped.load(Ordering::Relaxed) };
    let swept = if arguments.json && arguments.out.is_none() {
        plan.run(&watch).map(|swept| (None, sweep::missing(&swept), swept))
    } else {
        let request = RunRequest {
            root: config.get::<PathBuf>("run.output_root")?,
            out: arguments.out.clone(),
            ..RunRequest::new("analyze", std::env::args().collect())
        };
        sweep::keep(&plan, &config.to_yaml(), request, &watch)
            .map(|(folder, swept, missing)| (Some(folder), missing, swept))
    };
    bar.finish_and_clear();
    let (folder, missing, swept) = swept?;
    show(arguments, context, &swept)?;
    for missing in &missing {
        context.messages.warning(format!("partial: {missing}"));
    }
    if let Some(folder) = folder {
        context.messages.note(format!("sweep: {}", folder.join(sweep::PAGE).display()));
    }
    Ok(if missing.is_empty() { Exit::Done } else { Exit::Partial })
}

fn show(arguments: &Arguments, context: &Context, swept: &Sweep) -> Result<(), CliError> {
    if arguments.json {
        return context.messages.print_json(swept);
    }
    context.messages.print(&sweep::table(swept))
}

/// The workload as configured, where setting one of two quantities that go together leaves the other open.
fn workload(config: &Config) -> Result<Map<String, Value>, CliError> {
    let mut map: Map<String, Value> = config.get("workload")?;
    let settings = super::workload(config)?;
    let open: [(&str, bool); 4] = [
        ("text_tokens", settings.text_tokens.is_none()),
        ("seq_len", settings.seq_len.is_none()),
        ("max_new_tokens", settings.max_new_tokens.is_none()),
        ("decode_steps", settings.decode_steps.is_none()),
    ];
    for (key, _) in open.iter().filter(|(_, open)| *open) {
        map.insert((*key).to_owned(), Value::Null);
    }
    Ok(map)
}

/// `workload.batch=1,2,4` as an axis; every value is checked as an override of that key is.
fn axis(config: &Config, text: &str) -> Result<SweepAxis, CliError> {
    let Some((key, values)) = text.split_once('=') else {
        return Err(CliError::usage(format!("--sweep {text} has no values"))
            .hint("write a key and its values, such as --sweep workload.batch=1,2,4"));
    };
    if !key.starts_with("workload.") {
        return Err(SweepError::NoWorkloadKey { key: key.to_owned() }.into());
    }
    let mut axis = SweepAxis { key: key.to_owned(), values: Vec::new() };
    for value in split(values) {
        if value.is_empty() {
            return Err(CliError::usage(format!("--sweep {text} has an empty value")));
        }
        let changed = config.with(&[format!("{key}={value}")])?;
        let _: WorkloadSettings = changed.get("workload")?;
        axis.values.push(changed.get(key)?);
    }
    Ok(axis)
}

/// Splits at commas that stand outside brackets, braces and quotes.
fn split(values: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (at, c) in values.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(values[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(values[start..].trim());
    parts
}

/// Counts points; hidden where nobody would see it move.
fn bar(context: &Context, points: u64) -> ProgressBar {
    let target = if context.messages.is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{spinner} sweeping {wide_bar} {human_pos}/{human_len} points, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(points), target).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn commas_inside_brackets_and_quotes_belong_to_the_value() {
        assert_eq!(split("1,2, 4"), ["1", "2", "4"]);
        assert_eq!(split("[1,1],[2,3]"), ["[1,1]", "[2,3]"]);
        assert_eq!(split("{a: 1, b: 2},'x,y',\"a, b\""), ["{a: 1, b: 2}", "'x,y'", "\"a, b\""]);
        assert_eq!(split("1,"), ["1", ""]);
        assert_eq!(split("[1,2"), ["[1,2"]);
    }
}
