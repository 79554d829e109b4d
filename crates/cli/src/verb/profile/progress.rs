//! How far a run has come, on standard error: a bar on a terminal, a few plain lines elsewhere.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flow::profile::Progress;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::arguments::Context;

/// Time between two plain lines; shorter runs print none of the inferences.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// How often the bar turns while nothing is told. Rare enough to take no time from what is measured.
const TICK: Duration = Duration::from_millis(200);

/// Shows progress.
pub(crate) enum Display<'a> {
    Bar {
        bar: ProgressBar,
        /// Seconds the inferences will take in all, as far as those done tell; zero before the first is done.
        ///
        /// The bar's own estimate grows while a step lasts, without end on steps of minutes.
        expected: Arc<AtomicU64>,
        context: &'a Context,
    },
    Lines {
        state: RefCell<Lines>,
        context: &'a Context,
    },
}

/// What plain lines were printed.
pub(crate) struct Lines {
    begun: Instant,
    last: Instant,
    said: String,
}

impl<'a> Display<'a> {
    pub(crate) fn new(context: &'a Context) -> Self {
        if !std::io::stderr().is_terminal() {
            let now = Instant::now();
            return Self::Lines { state: RefCell::new(Lines { begun: now, last: now, said: String::new() }), context };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if context.messages.is_quiet() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(style("{spinner} {msg}"));
        bar.enable_steady_tick(TICK);
        Self::Bar { bar, expected: Arc::default(), context }
    }

    pub(crate) fn show(&self, progress: &Progress<'_>) {
        match self {
            Self::Bar { bar, expected, context } => show_bar(bar, expected, context, progress),
            Self::Lines { state, context } => {
                if let Some(line) = state.borrow_mut().line(progress, Instant::now()) {
                    context.messages.note(line);
                }
            }
        }
    }

    pub(crate) fn clear(&self) {
        if let Self::Bar { bar, .. } = self {
            bar.finish_and_clear();
        }
    }
}

fn show_bar(bar: &ProgressBar, expected: &Arc<AtomicU64>, context: &Context, progress: &Progress<'_>) {
    match progress {
        Progress::Doing(what) => bar.set_message((*what).to_owned()),
        Progress::Inference { done, total, pass, input, stage } => {
            if bar.length() != Some(*total) {
                bar.set_length(*total);
                bar.reset_elapsed();
                let expected = Arc::clone(expected);
                let left = move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
                    let expected = Duration::from_secs(expected.load(Ordering::Relaxed));
                    if !expected.is_zero() {
                        let left = expected.saturating_sub(state.elapsed());
                        let _ = write!(text, ", {:#} left", HumanDuration(left));
                    }
                };
                bar.set_style(style("{spinner} {msg} {wide_bar} {pos}/{len}{left}").with_key("left", left));
            }
            if bar.position() != *done {
                bar.set_position(*done);
                expected.store(whole(bar.elapsed(), *done, *total).as_secs(), Ordering::Relaxed);
            }
            let stage = stage.map(|stage| format!(", {stage}")).unwrap_or_default();
            bar.set_message(format!("{} {input}{stage}", pass.name()));
        }
        Progress::Note(text) => bar.suspend(|| context.messages.note(text)),
    }
}

/// What all inferences take if they go on as so far; `done` is not zero.
fn whole(so_far: Duration, done: u64, total: u64) -> Duration {
    so_far.mul_f64(total as f64 / done as f64)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Lines {
    /// The line to print now, if any.
    fn line(&mut self, progress: &Progress<'_>, now: Instant) -> Option<String> {
        let line = match progress {
            Progress::Note(text) => return Some((*text).to_owned()),
            Progress::Doing(what) if self.said == *what => return None,
            Progress::Doing(what) => {
                self.said = (*what).to_owned();
                self.begun = now;
                self.said.clone()
            }
            Progress::Inference { total, .. } if self.said.is_empty() || !self.said.starts_with("running") => {
                self.said = format!("running {total} inference{}", if *total == 1 { "" } else { "s" });
                self.begun = now;
                self.said.clone()
            }
            Progress::Inference { done, total, pass, input, .. } => {
                if *done == 0 || now.duration_since(self.last) < BETWEEN_LINES {
                    return None;
                }
                let so_far = now.duration_since(self.begun);
                let left = whole(so_far, *done, *total).saturating_sub(so_far);
                format!("{done} of {total} done, about {} s left; {} {input}", left.as_secs(), pass.name())
            }
        };
        self.last = now;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use flow::profile::Pass;

    use super::*;

    #[test]
    fn plain_lines_are_few_and_say_what_is_left() {
        let begun = Instant::now();
        let mut lines = Lines { begun, last: begun, said: String::new() };
        let mut told = Vec::new();
        let mut tell = |seconds: u64, progress: &Progress<'_>| {
            told.extend(lines.line(progress, begun + Duration::from_secs(seconds)));
        };
        tell(0, &Progress::Doing("loading weights"));
        tell(0, &Progress::Doing("loading weights"));
        for done in 0..10 {
            let pass = Pass::Measuring;
            tell(5 * done, &Progress::Inference { done, total: 10, pass, input: "a.png", stage: None });
        }
        assert_eq!(
            told,
            [
                "loading weights",
                "running 10 inferences",
                "2 of 10 done, about 40 s left; measuring a.png",
                "4 of 10 done, about 30 s left; measuring a.png",
                "6 of 10 done, about 20 s left; measuring a.png",
                "8 of 10 done, about 10 s left; measuring a.png",
            ]
        );
    }
}
