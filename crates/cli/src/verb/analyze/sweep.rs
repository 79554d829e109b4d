//! `llm-perf analyze --sweep`: the grid of settings from the command line, and what is shown of it.

use std::sync::atomic::{AtomicU64, Ordering};

use config::{Config, OverrideSource, Overrides};
use flow::model::LoadedModel;
use flow::sweep::{self, SweepSettings, Watch};
use flow::{EndedRun, StopRequest, WorkloadSettings};
use types::{Exit, SweepAxis, UserError};

use super::{Arguments, devices};
use crate::context::Context;
use crate::resolution;

pub(super) fn run(
    arguments: &Arguments,
    given: &Overrides,
    context: &Context,
    config: &Config,
    model: &LoadedModel,
) -> Result<Exit, UserError> {
    let settings = SweepSettings {
        workload: resolution::workload::map(config)?,
        axes: arguments.sweep.iter().map(|text| axis(config, text)).collect::<Result<_, _>>()?,
        devices: devices(arguments, config)?,
        config_dir: context.config_dir.clone(),
        launch_us: arguments.launch_us,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let plan = sweep::plan(model, &settings)?;
    let run = resolution::run_request("analyze", config, given, arguments.out.as_deref())?;
    let (interrupt, done) = (StopRequest::catch(), AtomicU64::new(0));
    let (folder, swept, missing) = context.progress(|display| {
        let advance = |points| {
            let done = done.fetch_add(points, Ordering::Relaxed) + points;
            display.count(done, plan.points(), "point", "sweeping");
        };
        let watch = Watch { done: &advance, stop: &|| interrupt.is_set() };
        if arguments.json && arguments.out.is_none() {
            let swept = plan.run(&watch)?;
            let missing = sweep::missing(&swept);
            return Ok::<_, UserError>((None, swept, missing));
        }
        let EndedRun { value, folder, missing } = sweep::keep(&plan, &config.to_yaml(), run, &watch)?;
        Ok((Some(folder), value, missing))
    })?;
    context.messages.print_answer(arguments.json, &swept, || sweep::table(&swept))?;
    let page = folder.map(|folder| ("report", folder.join(sweep::HTML)));
    Ok(context.messages.finish(&missing, page.as_slice()))
}

/// `workload.batch=1,2,4` as an axis; every value is checked as an override of that key is.
fn axis(config: &Config, text: &str) -> Result<SweepAxis, UserError> {
    let Some((key, values)) = text.split_once('=') else {
        return Err(UserError::usage(format!("--sweep {text} has no values"))
            .hint("write the key and its values, such as --sweep workload.batch=1,2,4"));
    };
    let mut axis = SweepAxis { key: key.to_owned(), values: Vec::new() };
    for value in split(values) {
        if value.is_empty() {
            return Err(UserError::usage(format!("--sweep {text} has an empty value")));
        }
        let mut change = Overrides::default();
        change.set_yaml(key, value, OverrideSource::Flag("--sweep"))?;
        if !change.iter().all(|one| one.is_below("workload")) {
            return Err(sweep::no_workload_key(key));
        }
        let changed = config.clone().with(&change)?;
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
