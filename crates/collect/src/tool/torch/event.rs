//! What a driver says while it works, one JSON object a line.

use std::collections::BTreeMap;

use crate::disturbance::Counters;
use serde::Deserialize;
use types::{Bytes, Nanos, Remedies, Stage, TryStatus, TryTurn};

/// One line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// It is there, with these versions.
    Hello {
        /// Version of what it speaks.
        protocol: u32,
        /// The interpreter.
        python: String,
        /// PyTorch.
        torch: String,
        /// CUDA version PyTorch was built for.
        cuda: Option<String>,
    },
    /// Where the model runs.
    Device(DeviceEvent),
    /// What takes a while.
    Doing {
        /// In words.
        what: String,
    },
    /// Something to know.
    Note {
        /// In words.
        text: String,
    },
    /// The model is there.
    Loaded(Box<LoadedEvent>),
    /// An input is prepared.
    Input(InputEvent),
    /// An inference starts.
    Inference {
        /// Done so far.
        done: u64,
        /// In total.
        total: u64,
        /// The input.
        input: String,
        /// What it is for.
        pass: PassName,
    },
    /// An inference is done.
    Sample(Box<SampleEvent>),
    /// What an input was answered with.
    Generated {
        /// The input.
        input: String,
        /// The tokens.
        tokens: Vec<i64>,
    },
    /// Memory of the device, at most, over the measured passes.
    Memory {
        /// In tensors.
        allocated_bytes: Bytes,
        /// Taken from the device.
        reserved_bytes: Bytes,
    },
    /// FLOPs as torch counts them.
    Flops {
        /// The input.
        input: String,
        /// Prefill, or decode for its first step.
        stage: Stage,
        /// Of that pass.
        flops: u64,
        /// How they were counted.
        notes: Vec<String>,
    },
    /// The profiled pass is on disk.
    Trace {
        /// The input it is of.
        input: String,
        /// Rounds in it.
        rounds: u32,
    },
    /// A remedy is prepared.
    Trying {
        /// Its name, or names with `+` between them.
        remedy: Remedies,
        /// Tried so far.
        done: u64,
        /// In total, as far as known.
        total: u64,
    },
    /// An inference with or without the remedy is done.
    Turn {
        /// Which remedy.
        remedy: Remedies,
        /// The inference.
        #[serde(flatten)]
        turn: TryTurn,
    },
    /// A remedy is done with.
    Tried(Box<TriedEvent>),
    /// It gave up.
    Failed(DriverFailure),
    /// Everything is done.
    Done,
}

/// Where the model runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DeviceEvent {
    /// `cpu`, `cuda:N`.
    pub id: String,
    /// What the driver of the device calls it.
    pub name: Option<String>,
    /// Its own number.
    pub uuid: Option<String>,
    /// Its memory.
    pub memory_bytes: Option<Bytes>,
}

/// The model, as it was built.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadedEvent {
    /// Time it took.
    pub load_ns: Nanos,
    /// Its class.
    pub model_class: String,
    /// Its parameters.
    pub parameters: u64,
    /// Memory of them.
    pub parameter_bytes: Bytes,
    /// Their element type, as torch calls it.
    pub dtype: String,
    /// How it computes attention.
    pub attention: Option<String>,
    /// Version of transformers.
    pub transformers: Option<String>,
    /// Modules of the vision stages, by path.
    pub stages: BTreeMap<String, Stage>,
}

/// An input, as it was prepared.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct InputEvent {
    /// Its name.
    pub name: String,
    /// Tokens of the prompt.
    #[serde(default)]
    pub prompt_tokens: u64,
    /// How many of them stand for an image.
    #[serde(default)]
    pub image_tokens: u64,
    /// Inputs at once.
    pub batch: u64,
    /// Width and height its image was resized to, for models that take one of any shape.
    pub pixels: Option<[u64; 2]>,
}

/// What an inference is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PassName {
    /// To warm up.
    Warmup,
    /// For its times.
    Measure,
    /// Under the profiler.
    Profile,
}

/// Times of one inference.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SampleEvent {
    /// The input.
    pub input: String,
    /// Epoch.
    pub epoch: u32,
    /// Repeat.
    pub repeat: u32,
    /// What it was for.
    pub pass: PassName,
    /// Of the whole, taken apart from the stages.
    pub wall_ns: Nanos,
    /// Of the stages.
    pub stages: BTreeMap<Stage, Nanos>,
    /// Tokens generated.
    pub generated: u64,
    /// What the system had counted before and after it; absent in passes that are not for times.
    pub machine: Option<[Counters; 2]>,
}

/// What came of a remedy.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TriedEvent {
    /// Which.
    pub remedy: Remedies,
    /// How it ended.
    pub status: TryStatus,
    /// Why it was not carried through.
    pub reason: Option<String>,
    /// The answers side by side.
    pub output: Option<ComparedAnswers>,
    /// Memory of the baseline, at most.
    pub baseline_peak_memory_bytes: Option<Bytes>,
    /// The same with the remedy.
    pub peak_memory_bytes: Option<Bytes>,
    /// What compiling or capturing took.
    pub compile_ns: Option<Nanos>,
    /// What else is to be known.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Two answers to one prompt.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct ComparedAnswers {
    /// Tokens compared.
    pub tokens: u64,
    /// Tokens that differ.
    pub differing_tokens: u64,
    /// The largest distance of two logits.
    pub max_logit_distance: Option<f64>,
}

/// Why a driver gave up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DriverFailure {
    /// What kind of trouble.
    pub kind: FailureKind,
    /// In a sentence.
    pub message: String,
    /// Where in Python; absent where that says nothing.
    pub traceback: Option<String>,
}

/// Kinds of trouble a user can do something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// torch cannot be imported.
    Torch,
    /// transformers cannot be imported.
    Transformers,
    /// The device is not there.
    Device,
    /// No config, or one nobody knows.
    Config,
    /// The model brings code, and nobody said it may run.
    RemoteCode,
    /// The user's factory is not what it should be.
    Factory,
    /// How the model takes images is not known.
    Pictures,
    /// The model cannot do what a setting asks for.
    Settings,
    /// Something cannot be imported.
    Import,
    /// Memory ran out.
    Memory,
    /// The user stopped it.
    Stopped,
    /// The model raised an exception.
    #[serde(other)]
    Model,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_of_a_recorded_session_is_understood() {
        let session = include_str!("../../../tests/fixtures/torch/session.jsonl");
        let events: Vec<Event> = session.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(matches!(events.first(), Some(Event::Hello { protocol: super::super::PROTOCOL, .. })));
        assert_eq!(events.last(), Some(&Event::Done));
        let samples = events.iter().filter(|event| matches!(event, Event::Sample(_))).count();
        assert_eq!(samples, 3);
    }

    #[test]
    fn a_kind_of_trouble_nobody_knows_is_the_models() {
        let line = r#"{"event":"failed","kind":"new","message":"m","traceback":null}"#;
        let Event::Failed(failure) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
        assert_eq!(failure.kind, FailureKind::Model);
    }
}
