//! A model that is loaded and what turns its tokens into text: all that an inference on the native engine needs.

use engine::{Checkpoint, Session, Tokenizer};
use network::Model;
use types::{DType, UserError};

use super::measure::{Runner, Writer};
use crate::runner::error::no_usable_inputs;
use crate::runner::inputs::Inputs;
use crate::runner::inputs::plan::{InputPlan, plan};
use crate::runner::inputs::prepare::PreparedInput;
use crate::runner::inputs::{self, prepare};
use crate::runner::request::ProfileRequest;

/// Everything an inference needs in addition to its input.
pub(crate) struct Bench {
    pub(crate) session: Session,
    tokenizer: Option<Tokenizer>,
    vocabulary: Option<u64>,
}

impl Bench {
    /// Loads the weights, and the tokenizer of a network that takes tokens.
    pub(crate) fn load(
        network: Model,
        vocabulary: Option<u64>,
        request: &ProfileRequest,
        kept: DType,
    ) -> Result<Self, UserError> {
        let checkpoint = match request.weights.weights.as_str() {
            "synthetic" => Checkpoint::Synthetic { seed: request.weights.seed },
            path => Checkpoint::Safetensors(path.into()),
        };
        let session = Session::load(network, &checkpoint, kept)?;
        let tokenizer = vocabulary.map(|vocabulary| tokenizer(&checkpoint, vocabulary)).transpose()?;
        Ok(Self { session, tokenizer, vocabulary })
    }

    /// The inputs of every epoch, prepared.
    pub(crate) fn plan(&self, request: &ProfileRequest, inputs: &mut Inputs) -> Result<InputPlan, UserError> {
        plan(&request.dataset.sampling, inputs, |input| {
            prepare::prepare(input, &request.infer, self.tokenizer.as_ref(), self.vocabulary.unwrap_or_default())
        })
    }

    /// The first input of the first epoch, prepared.
    pub(crate) fn first(&self, request: &ProfileRequest) -> Result<PreparedInput, UserError> {
        let mut inputs = inputs::find(&request.dataset, &request.infer)?;
        let InputPlan { epochs, mut prepared } = self.plan(request, &mut inputs)?;
        let first = epochs.iter().flatten().next().and_then(|index| prepared.remove(index));
        first.ok_or_else(|| no_usable_inputs(0, "no inputs"))
    }

    /// What runs them.
    pub(crate) fn runner<'a>(&'a self, request: &'a ProfileRequest) -> Runner<'a> {
        let writer = self.tokenizer.as_ref().zip(request.infer.decoding());
        Runner {
            session: &self.session,
            writer: writer.map(|(tokenizer, decoding)| Writer { tokenizer, decoding }),
            last_logits_only: request.infer.last_logits_only(),
        }
    }
}

/// The checkpoint's own tokenizer, or one that needs no file.
fn tokenizer(checkpoint: &Checkpoint, vocabulary: u64) -> Result<Tokenizer, UserError> {
    let beside = match checkpoint {
        Checkpoint::Safetensors(path) if path.is_dir() => Some(path.clone()),
        Checkpoint::Safetensors(path) => path.parent().map(std::path::PathBuf::from),
        Checkpoint::Synthetic { .. } => None,
    };
    Ok(match beside.filter(|folder| folder.join("tokenizer.json").is_file()) {
        Some(folder) => Tokenizer::from_folder(&folder)?,
        None => Tokenizer::bytes(vocabulary)?,
    })
}
