//! A session: a network and its weights, loaded once and run many times.

use std::collections::BTreeMap;
use std::time::Instant;

use network::{Images, Model, Module, NetworkError, Prompt};
use types::{DType, Nanos, Role};

use crate::heap;
use crate::nvtx;
use crate::rehearsal::rehearse;
use crate::threads;
use crate::trace::{Trace, since};
use crate::{Checkpoint, ComputeError, Engine, EngineError, Tensor, Value, Weights, load_weights};

/// Images, normalised, one after the other as `[count, 3, side, side]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageBatch {
    /// How many.
    pub count: usize,
    /// Side of each.
    pub side: usize,
    /// Values, channels first.
    pub pixels: Vec<f32>,
}

/// The images of one page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageImages {
    /// The padded whole page.
    pub global: ImageBatch,
    /// Its tiles, row by row; absent when it has none.
    pub tiles: Option<ImageBatch>,
    /// Tiles across and down.
    pub crop_grid: [u64; 2],
}

/// A prompt, prepared: what prefill is given.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptData {
    /// Token ids.
    pub ids: Vec<i64>,
    /// Which of them are image tokens; all false without images.
    pub image_mask: Vec<bool>,
    /// The images.
    pub images: Option<PageImages>,
    /// Features that an encoder of sound or cross-attention to a picture is given.
    pub source: Option<Features>,
}

/// Features of one sequence, one row behind the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// Rows and columns.
    pub dims: [usize; 2],
    /// Values.
    pub values: Vec<f32>,
}

/// The outcome of one forward pass.
#[derive(Debug)]
pub struct Forward {
    /// Logits `[batch, positions, vocabulary]`, or class scores.
    pub logits: Tensor,
    /// Start, since the session's clock started.
    pub start: Nanos,
    /// Wall time.
    pub duration: Nanos,
    /// What was recorded.
    pub trace: Trace,
}

/// A network and its weights.
#[derive(Debug)]
pub struct Session {
    model: Model,
    weights: Weights,
    zero: Instant,
    load: Nanos,
}

/// One sequence on its way, or a batch of sequences with the same tokens: the cache and what has been recorded.
#[derive(Debug)]
pub struct Generation<'a> {
    session: &'a Session,
    batch: usize,
    engine: Engine<'a>,
}

impl Session {
    /// Loads the weights of `model` to be kept in `dtype`: single precision, or bf16 at half the memory. What is computed
    /// with them is single precision either way.
    /// The thread that loads is best the one that runs: it takes part in the work.
    pub fn load(model: Model, from: &Checkpoint, dtype: DType) -> Result<Self, EngineError> {
        heap::keep_freed();
        rehearse(&model)?;
        threads::join();
        let zero = Instant::now();
        let weights = load_weights(model.blueprint(), from, dtype)?;
        Ok(Self { model, weights, zero, load: since(zero) })
    }

    /// The network.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Element type the weights are kept in.
    pub fn dtype(&self) -> DType {
        self.weights.dtype()
    }

    /// Time loading took.
    pub fn load_time(&self) -> Nanos {
        self.load
    }

    /// Time since the session's clock started.
    pub fn now(&self) -> Nanos {
        since(self.zero)
    }

    /// Starts a sequence of at most `capacity` positions.
    pub fn start(&self, capacity: usize) -> Generation<'_> {
        self.start_batch(capacity, 1)
    }

    /// Starts `batch` sequences at once, which are all given the same tokens.
    pub fn start_batch(&self, capacity: usize, batch: usize) -> Generation<'_> {
        let engine = Engine::new(self.model.blueprint(), &self.weights, capacity, self.zero);
        Generation { session: self, batch, engine }
    }
}

impl Generation<'_> {
    /// Keeps the outputs of the module at `path` from now on; false when there is none.
    pub fn watch(&mut self, path: &str) -> bool {
        self.engine.watch(path)
    }

    /// Outputs of the watched module since the last call, in order.
    pub fn watched(&mut self, path: &str) -> Vec<Tensor> {
        self.engine.watched(path)
    }

    /// Rows each expert got since the last call, by the module that holds the experts.
    pub fn take_routed(&mut self) -> BTreeMap<Module, Vec<u64>> {
        self.engine.take_routed()
    }

    /// Whether operations are recorded from now on.
    pub fn set_tracing(&mut self, on: bool) {
        self.engine.set_tracing(on);
    }

    /// Runs the prompt.
    pub fn prefill(&mut self, prompt: &PromptData, last_logits_only: bool) -> Result<Forward, EngineError> {
        let _range = nvtx::Range::push("prefill");
        let images = match &prompt.images {
            None => None,
            Some(images) => {
                let mask: Vec<u8> = prompt.image_mask.iter().map(|masked| u8::from(*masked)).collect();
                let mask = tensor(Tensor::new(mask.repeat(self.batch), [self.batch, prompt.ids.len()]))?;
                let all = |batch: &ImageBatch| self.images(batch, self.batch);
                Some(Images {
                    global: all(&images.global)?,
                    tiles: images.tiles.as_ref().map(all).transpose()?,
                    crop_grid: images.crop_grid,
                    pixels: None,
                    mask: Value::new(mask, DType::Bool, Role::Activation)?,
                })
            }
        };
        let features = prompt.source.as_ref().map(|features| self.features(features)).transpose()?;
        let Some(start) = self.session.model.start_token() else {
            let input = self.ids(&prompt.ids)?;
            let prompt_data = Prompt { input, offset: 0, images, source: features, last_logits_only };
            return self.forward(prompt_data, prompt.ids.len());
        };
        // The prompt is the encoder's; the decoder starts from one token.
        let reads_tokens = self.session.model.source(1, 1, DType::Fp32).is_some_and(|spec| spec.dtype == DType::Int64);
        let source = match (reads_tokens, features) {
            (true, _) => self.ids(&prompt.ids)?,
            (false, Some(features)) => features,
            (false, None) => {
                let why = "an audio encoder needs features in its prompt, not tokens".to_owned();
                return Err(EngineError::Network(NetworkError::Prompt(why)));
            }
        };
        let input = self.ids(&[i64::try_from(start).unwrap_or_default()])?;
        self.forward(Prompt { input, offset: 0, images: None, source: Some(source), last_logits_only }, 1)
    }

    /// Runs one more token.
    pub fn step(&mut self, token: i64) -> Result<Forward, EngineError> {
        let _range = nvtx::Range::push("decode_step");
        let input = self.ids(&[token])?;
        let offset = self.engine.cached() as u64;
        self.forward(Prompt { input, offset, images: None, source: None, last_logits_only: true }, 1)
    }

    /// Runs images through a network that takes nothing else.
    pub fn classify(&mut self, images: &ImageBatch) -> Result<Forward, EngineError> {
        let _range = nvtx::Range::push("prefill");
        let input = self.images(images, 1)?;
        self.forward(Prompt { input, offset: 0, images: None, source: None, last_logits_only: false }, 0)
    }

    fn forward(&mut self, prompt: Prompt<Value>, positions: usize) -> Result<Forward, EngineError> {
        let (wanted, most) = (self.engine.cached() + positions, self.session.model.exact_tokens());
        if let Some(most) = most.and_then(|most| usize::try_from(most).ok()).filter(|most| wanted > *most) {
            return Err(EngineError::CacheFull { wanted, capacity: most });
        }
        let start = self.session.now();
        let logits = self.session.model.forward(&mut self.engine, &prompt)?;
        let duration = self.session.now() - start;
        self.engine.advance(positions);
        Ok(Forward { logits: logits.tensor().clone(), start, duration, trace: self.engine.take_trace() })
    }

    fn ids(&self, ids: &[i64]) -> Result<Value, EngineError> {
        let ids = tensor(Tensor::new(ids.repeat(self.batch), [self.batch, ids.len()]))?;
        Value::new(ids, DType::Int64, Role::Activation)
    }

    fn features(&self, Features { dims, values }: &Features) -> Result<Value, EngineError> {
        let made = Tensor::new(values.repeat(self.batch), [self.batch, dims[0], dims[1]]);
        Value::new(tensor(made)?, DType::Fp32, Role::Activation)
    }

    fn images(&self, images: &ImageBatch, times: usize) -> Result<Value, EngineError> {
        let ImageBatch { count, side, pixels } = images;
        let made = tensor(Tensor::new(pixels.repeat(times), [count * times, 3, *side, *side]))?;
        Value::new(made, DType::Fp32, Role::Activation)
    }
}

impl Forward {
    /// Logits of the last position, in single precision.
    pub fn last_logits(&self) -> Result<Vec<f32>, EngineError> {
        let logits = tensor(self.logits.in_order())?;
        Ok(logits[logits.len().saturating_sub(self.logits.width())..].to_vec())
    }
}

fn tensor<T>(result: Result<T, ComputeError>) -> Result<T, EngineError> {
    result.map_err(|source| EngineError::Compute { op: "prompt", source })
}
