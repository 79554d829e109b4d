//! How far a verb has come, on standard error: a bar on a terminal, a few plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flow::profile::Progress;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::message::Messages;

/// Time between two plain lines; shorter runs print no counts.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// How often the bar turns while nothing new is known. Rare enough to take no time from what is measured.
const TICK: Duration = Duration::from_millis(200);

/// Shows progress.
pub(crate) struct ProgressDisplay<'a> {
    messages: &'a Messages,
    form: Form,
}

enum Form {
    Bar {
        bar: ProgressBar,
        /// Expected seconds for all steps, judged by those done; zero before the first is done.
        ///
        /// The bar's own estimate grows while a step lasts, without end on steps of minutes.
        expected: Arc<AtomicU64>,
    },
    Lines(Mutex<PlainLines>),
}

/// Which plain lines were printed.
struct PlainLines {
    start: Instant,
    last: Instant,
    shown: String,
    count: u64,
}

impl<'a> ProgressDisplay<'a> {
    pub(crate) fn new(messages: &'a Messages) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { messages, form: Form::Lines(Mutex::new(PlainLines::new(Instant::now()))) };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if messages.is_quiet() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(style("{spinner} {msg} ({elapsed})"));
        bar.enable_steady_tick(TICK);
        Self { messages, form: Form::Bar { bar, expected: Arc::default() } }
    }

    /// What is being done, where there is nothing to count.
    pub(crate) fn doing(&self, what: &str) {
        self.show(&Progress::Doing(what));
    }

    /// What a run says of itself.
    pub(crate) fn show(&self, progress: &Progress<'_>) {
        match (progress, &self.form) {
            (Progress::Doing(what), Form::Bar { bar, .. }) => bar.set_message((*what).to_owned()),
            (Progress::Doing(what), Form::Lines(lines)) => self.line(lines, |lines| lines.doing(what, Instant::now())),
            (Progress::Note(text), Form::Bar { bar, .. }) => bar.suspend(|| self.messages.note(text)),
            (Progress::Note(text), Form::Lines(_)) => self.messages.note(text),
            (Progress::Output(bytes), Form::Bar { bar, .. }) => bar.suspend(|| self.messages.pass_on(bytes)),
            (Progress::Output(bytes), Form::Lines(_)) => self.messages.pass_on(bytes),
            (Progress::Inference { done, total, pass, input, stage }, _) => {
                let stage = stage.map(|stage| format!(", {stage}")).unwrap_or_default();
                self.count(*done, *total, "inference", &format!("{} {input}{stage}", pass.name()));
            }
        }
    }

    /// So many of so many are done; `now` is the current one.
    pub(crate) fn count(&self, done: u64, total: u64, unit: &str, now: &str) {
        match &self.form {
            Form::Bar { bar, expected } => {
                if bar.length() != Some(total) {
                    bar.set_length(total);
                    bar.reset_elapsed();
                    bar.set_style(counting(Arc::clone(expected)));
                }
                if bar.position() != done {
                    bar.set_position(done);
                    expected.store(whole(bar.elapsed(), done, total).as_secs(), Ordering::Relaxed);
                }
                bar.set_message(now.to_owned());
            }
            Form::Lines(lines) => self.line(lines, |lines| lines.count(done, total, unit, now, Instant::now())),
        }
    }

    fn line(&self, lines: &Mutex<PlainLines>, next: impl FnOnce(&mut PlainLines) -> Option<String>) {
        if let Some(line) = next(&mut lines.lock().unwrap_or_else(PoisonError::into_inner)) {
            self.messages.note(line);
        }
    }
}

/// What is printed afterwards finds a clean line.
impl Drop for ProgressDisplay<'_> {
    fn drop(&mut self) {
        if let Form::Bar { bar, .. } = &self.form {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn counting(expected: Arc<AtomicU64>) -> ProgressStyle {
    let left = move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        let expected = Duration::from_secs(expected.load(Ordering::Relaxed));
        if !expected.is_zero() {
            let left = expected.saturating_sub(state.elapsed());
            let _ = write!(text, ", {:#} left", HumanDuration(left));
        }
    };
    style("{spinner} {msg} {wide_bar} {human_pos}/{human_len}{left}").with_key("left", left)
}

/// The time for all steps if they go on as so far; `done` is not zero.
fn whole(so_far: Duration, done: u64, total: u64) -> Duration {
    so_far.mul_f64(total as f64 / done.max(1) as f64)
}

impl PlainLines {
    fn new(now: Instant) -> Self {
        Self { start: now, last: now, shown: String::new(), count: 0 }
    }

    fn doing(&mut self, what: &str, now: Instant) -> Option<String> {
        if self.shown == what {
            return None;
        }
        *self = Self { shown: what.to_owned(), ..Self::new(now) };
        Some(what.to_owned())
    }

    fn count(&mut self, done: u64, total: u64, unit: &str, current: &str, now: Instant) -> Option<String> {
        if self.count != total {
            let line = format!("running {total} {unit}{}", if total == 1 { "" } else { "s" });
            *self = Self { count: total, ..Self::new(now) };
            return Some(line);
        }
        if done == 0 || now.duration_since(self.last) < BETWEEN_LINES {
            return None;
        }
        self.last = now;
        let so_far = now.duration_since(self.start);
        let left = whole(so_far, done, total).saturating_sub(so_far);
        Some(format!("{done} of {total} done, about {} s left; {current}", left.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_are_few_and_say_what_is_left() {
        let start = Instant::now();
        let mut lines = PlainLines::new(start);
        let mut shown = Vec::new();
        shown.extend(lines.doing("loading weights", start));
        shown.extend(lines.doing("loading weights", start));
        for done in 0..10 {
            let now = start + Duration::from_secs(5 * done);
            shown.extend(lines.count(done, 10, "inference", "measuring a.png", now));
        }
        assert_eq!(
            shown,
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
