//! A driver from its start to its last word.

use std::fmt::Write as _;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use analysis::TryRuns;
use collect::environment::GpuSampler;
use collect::process::{Ending, Interrupt, Limits, Process};
use collect::tool::torch::{
    DeviceEvent, DriverFailure, Event, FailureKind, InputEvent, LoadedEvent, PROTOCOL, PassName, SampleEvent,
    TriedEvent, TriesRequest,
};
use collect::{Command, disturbance};
use types::{
    Bytes, DeviceUse, InferenceDisturbance, Nanos, OutputChange, Remedies, Sample, Stage, TryStatus, UserError,
};

use crate::pipeline::progress::{Pass, Progress};
use crate::runner::error::stopped as stopped_by_user;

/// How often it is asked whether the user wants to stop.
const PAUSE: Duration = Duration::from_millis(100);

/// Everything a driver said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) versions: Option<Versions>,
    pub(crate) device: Option<DeviceEvent>,
    pub(crate) loaded: Option<Box<LoadedEvent>>,
    pub(crate) inputs: Vec<InputEvent>,
    pub(crate) samples: Vec<SampleEvent>,
    pub(crate) generated: Vec<(String, Vec<i64>)>,
    pub(crate) memory: Option<[Bytes; 2]>,
    pub(crate) flops: Vec<CountedFlops>,
    /// The input of the profiled pass.
    pub(crate) trace: Option<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) tries: Vec<TryRuns>,
    pub(crate) failure: Option<DriverFailure>,
    /// The devices while it ran.
    pub(crate) devices: Vec<DeviceUse>,
    /// Inferences planned.
    pub(crate) total: u64,
    pub(crate) done: bool,
    /// Lines as they came, to be kept.
    pub(crate) lines: String,
    /// Lines that are no event.
    pub(crate) strange: u64,
}

/// What the driver runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) python: String,
    pub(crate) torch: String,
    pub(crate) cuda: Option<String>,
}

/// FLOPs of one forward pass, as torch counts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountedFlops {
    pub(crate) input: String,
    pub(crate) stage: Stage,
    pub(crate) flops: u64,
    pub(crate) notes: Vec<String>,
}

/// Runs a driver to its end. One that the user stopped after it had measured something is one that was interrupted.
pub(crate) fn run(
    command: &Command,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(Session, Ending), UserError> {
    let sampler = GpuSampler::start();
    sampler.watch();
    let (process, lines) = Process::start_with_channel(command)?;
    let (sender, receiver) = channel();
    // A thread of its own reads, so that a silent driver does not keep the user from stopping it.
    let reader = std::thread::spawn(move || lines.map_while(|line| sender.send(line).ok()).count());
    let mut session = Session::default();
    let mut stopped = false;
    loop {
        match receiver.recv_timeout(PAUSE) {
            Ok(line) => session.take(&line, progress),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if !stopped && stop() {
            stopped = true;
            process.kill();
        }
    }
    let _ = reader.join();
    session.devices = sampler.finish();
    let ending = process.wait(&Limits::default(), Interrupt::Ignored)?.ending;
    if !stopped {
        return Ok((session, ending));
    }
    if session.samples.iter().any(|sample| sample.pass == PassName::Measure) {
        return Ok((session, Ending::Interrupted));
    }
    Err(stopped_by_user(session.samples.len() as u64, session.total))
}

impl Session {
    /// A session from its lines.
    pub(crate) fn read(lines: &str) -> Self {
        let mut session = Self::default();
        lines.lines().for_each(|line| session.take(line, &mut |_| {}));
        session
    }

    /// Takes one line in.
    fn take(&mut self, line: &str, progress: &mut dyn FnMut(Progress<'_>)) {
        let _ = writeln!(self.lines, "{line}");
        let Ok(event) = serde_json::from_slice::<Event>(line.as_bytes()) else {
            self.strange += 1;
            return;
        };
        match event {
            Event::Hello { protocol, python, torch, cuda } if protocol == PROTOCOL => {
                self.versions = Some(Versions { python, torch, cuda });
            }
            Event::Hello { .. } => self.strange += 1,
            Event::Device(device) => self.device = Some(device),
            Event::Doing { what } => progress(Progress::Doing(&what)),
            Event::Note { text } => self.notes.push(text),
            Event::Loaded(loaded) => self.loaded = Some(loaded),
            Event::Input(input) => self.inputs.push(input),
            Event::Inference { done, total, input, pass } => {
                self.total = total;
                let pass = match pass {
                    PassName::Warmup => Pass::WarmUp,
                    PassName::Measure => Pass::Measuring,
                    PassName::Profile => Pass::Tracing,
                };
                progress(Progress::Inference { done, total, pass, input: &input, stage: None });
            }
            Event::Sample(sample) => self.samples.push(*sample),
            Event::Generated { input, tokens } => self.generated.push((input, tokens)),
            Event::Memory { allocated_bytes, reserved_bytes } => self.memory = Some([allocated_bytes, reserved_bytes]),
            Event::Flops { input, stage, flops, notes } => {
                self.flops.push(CountedFlops { input, stage, flops, notes });
            }
            Event::Trace { input, .. } => self.trace = Some(input),
            Event::Trying { remedy, done, total } => {
                progress(Progress::Doing(&format!("trying {remedy} ({} of {total})", done + 1)));
                let reason = Some("the driver exited while trying it".to_owned());
                self.tries.push(TryRuns::new(remedy, TryStatus::NotReached, reason));
            }
            Event::Turn { remedy, turn } => match self.tries.last_mut().filter(|one| one.remedies == remedy) {
                Some(one) => one.turns.push(turn),
                None => self.strange += 1,
            },
            Event::Tried(tried) => match self.tries.last_mut().filter(|one| one.remedies == tried.remedy) {
                Some(one) => end(one, *tried),
                None => self.strange += 1,
            },
            Event::Failed(failure) => self.failure = Some(failure),
            Event::Done => self.done = true,
        }
    }

    /// Every remedy that was asked for, also where the driver did not get to it.
    pub(crate) fn tries(&self, asked: Option<&TriesRequest>) -> Vec<TryRuns> {
        let begun = |wanted: &Remedies| self.tries.iter().any(|one| one.remedies == *wanted);
        let asked = asked.iter().flat_map(|asked| &asked.remedies);
        let missing = asked.filter_map(|remedies| Remedies::new(remedies.clone()).ok()).filter(|wanted| !begun(wanted));
        let never = |remedies| {
            let reason = Some("the driver exited before trying it".to_owned());
            TryRuns::new(remedies, TryStatus::NotReached, reason)
        };
        self.tries.iter().cloned().chain(missing.map(never)).collect()
    }

    /// Times of stages of these passes.
    pub(crate) fn samples(&self, of: impl Fn(PassName) -> bool, rank: Option<u32>) -> Vec<Sample> {
        let of_pass = self.samples.iter().filter(|sample| of(sample.pass));
        let stages = |sample: &SampleEvent| {
            let make = |(stage, wall_ns): (&Stage, &Nanos)| Sample {
                stage: *stage,
                input: Some(sample.input.clone()),
                epoch: sample.epoch,
                repeat: sample.repeat,
                rank,
                warmup: sample.pass == PassName::Warmup,
                wall_ns: *wall_ns,
            };
            sample.stages.iter().map(make).collect::<Vec<_>>()
        };
        of_pass.flat_map(stages).collect()
    }

    /// What every inference without a profiler got of the machine.
    pub(crate) fn disturbance(&self) -> Vec<InferenceDisturbance> {
        let of = |sample: &SampleEvent| {
            let [before, after] = sample.machine.as_ref()?;
            let mut disturbance = after.since(before);
            // The driver of a device was asked all along, and says nothing of single inferences.
            disturbance.causes.extend(self.devices.iter().flat_map(disturbance::of_device));
            Some(InferenceDisturbance {
                input: Some(sample.input.clone()),
                epoch: sample.epoch,
                repeat: sample.repeat,
                warmup: sample.pass == PassName::Warmup,
                disturbance,
            })
        };
        self.samples.iter().filter_map(of).collect()
    }

    /// Wall time of the measured inferences, warm-up left out.
    pub(crate) fn wall(&self) -> Nanos {
        let measured = self.samples.iter().filter(|sample| sample.pass == PassName::Measure);
        measured.map(|sample| sample.wall_ns).sum()
    }

    /// Why the driver did not get to its end, where it did not.
    pub(crate) fn trouble(&self, ending: Ending) -> Option<(FailureKind, String)> {
        match (&self.failure, self.done) {
            (Some(failure), _) => Some((failure.kind, failure.message.clone())),
            (None, true) => None,
            (None, false) => {
                let far = match self.total {
                    0 => "before the model ran".to_owned(),
                    total => format!("after {} of {total} inferences", self.samples.len()),
                };
                let kind = match ending {
                    Ending::Interrupted => FailureKind::Stopped,
                    // Where memory runs out the system kills without a word.
                    Ending::Signal(9) => FailureKind::Memory,
                    _ => FailureKind::Model,
                };
                Some((kind, format!("the Python driver {ending}, {far}")))
            }
        }
    }
}

/// Takes in how a try ended.
fn end(one: &mut TryRuns, tried: TriedEvent) {
    one.status = tried.status;
    one.reason = tried.reason;
    one.output = tried.output.map(|output| OutputChange {
        equal: output.differing_tokens == 0,
        tokens: output.tokens,
        differing_tokens: output.differing_tokens,
        max_logit_distance: output.max_logit_distance,
    });
    one.baseline_peak_memory = tried.baseline_peak_memory_bytes;
    one.peak_memory = tried.peak_memory_bytes;
    one.compile = tried.compile_ns;
    one.notes = tried.notes;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(lines: &[&str]) -> Session {
        let mut session = Session::default();
        lines.iter().for_each(|line| session.take(line, &mut |_| {}));
        session
    }

    #[test]
    fn what_is_no_event_is_counted_and_kept_and_does_no_harm() {
        let session = session(&["garbage", r#"{"event":"unheard of"}"#, r#"{"event":"done"}"#]);
        assert_eq!((session.strange, session.done), (2, true));
        assert_eq!(session.lines.lines().count(), 3);
    }

    #[test]
    fn a_driver_that_falls_silent_is_told_with_how_far_it_came() {
        let begun = r#"{"event":"inference","done":0,"total":5,"input":"a","pass":"measure"}"#;
        let sample = r#"{"event":"sample","input":"a","epoch":0,"repeat":0,"pass":"measure","wall_ns":9,
            "stages":{"prefill":5,"decode":4},"generated":2}"#;
        let one = session(&[begun, sample]);
        let (kind, message) = one.trouble(Ending::Signal(9)).unwrap();
        assert_eq!(kind, FailureKind::Memory);
        assert!(message.ends_with("after 1 of 5 inferences"), "{message}");
        assert_eq!(one.samples(|pass| pass == PassName::Measure, Some(3)).len(), 2);
        assert_eq!(one.wall(), Nanos::new(9));
        let (_, message) = session(&[]).trouble(Ending::Code(1)).unwrap();
        assert_eq!(message, "the Python driver exited with code 1, before the model ran");
    }
}
