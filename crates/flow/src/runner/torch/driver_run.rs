//! What a driver was asked beside what it answered.

use collect::tool::torch::{InputEvent, PassName};
use types::{DType, Hardware, InputFacts, Sample, Workload};

use super::TorchRequest;
use super::model::TorchModel;
use super::question::Question;
use super::session::Session;
use crate::runner::bare::BareRun;
use crate::runner::native::records::workload_of;

/// A driver's session beside what it was asked.
#[derive(Clone, Copy)]
pub(crate) struct DriverRun<'a> {
    pub(crate) model: &'a TorchModel,
    pub(crate) request: &'a TorchRequest,
    pub(crate) question: &'a Question,
    pub(crate) session: &'a Session,
    /// The device whose rates the user says apply.
    pub(crate) named: Option<&'a Hardware>,
}

impl DriverRun<'_> {
    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.session.samples(|pass| pass != PassName::Profile, None)
    }

    /// Element type of the arithmetic; absent where torch's is none of ours.
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.session.loaded.as_ref().and_then(|loaded| loaded.dtype.parse().ok())
    }

    /// Inputs as they were fed: what was prepared here, put right by what the driver made of it.
    pub(crate) fn inputs(&self) -> Vec<InputFacts> {
        let facts = |event: &InputEvent| {
            let prepared = self.question.prepared.iter().find(|one| one.facts.name == event.name);
            let generated = self.session.samples.iter().filter(|sample| sample.input == event.name);
            InputFacts {
                name: event.name.clone(),
                width: prepared.and_then(|one| one.facts.width),
                height: prepared.and_then(|one| one.facts.height),
                crop_grid: prepared.and_then(|one| one.facts.crop_grid),
                batch: event.batch,
                prompt_tokens: event.prompt_tokens,
                image_tokens: event.image_tokens,
                generated_tokens: generated.map(|sample| sample.generated).max().unwrap_or_default(),
            }
        };
        self.session.inputs.iter().map(facts).collect()
    }

    /// What was run, input by input.
    pub(crate) fn ran(&self) -> BareRun {
        let mut ran = BareRun {
            samples: self.samples(),
            workloads: Vec::new(),
            not_modelled: self.model.known.as_ref().err().cloned(),
        };
        for facts in self.inputs() {
            match self.workload(&facts, self.dtype()) {
                Ok(workload) => ran.workloads.extend(workload),
                Err(reason) => ran.not_modelled = Some(reason),
            }
        }
        ran
    }

    /// The workload of one input; `None` where the model is not known, an error says why not.
    pub(crate) fn workload(&self, facts: &InputFacts, dtype: Option<DType>) -> Result<Option<Workload>, String> {
        let Ok(known) = &self.model.known else { return Ok(None) };
        let Some(dtype) = dtype else {
            return Err("the analytic model does not support the element type torch ran in".to_owned());
        };
        let Some(prepared) = self.question.prepared.iter().find(|one| one.facts.name == facts.name) else {
            return Ok(None);
        };
        let mut workload = workload_of(facts, prepared, dtype, self.request.profile.infer.last_logits_only());
        let fed = self.session.inputs.iter().find(|input| input.name == facts.name).and_then(|input| input.pixels);
        if let Some(image) = fed.and_then(|pixels| known.network.resized(pixels)) {
            if image.image_tokens != facts.image_tokens {
                let (ran, modelled) = (facts.image_tokens, image.image_tokens);
                return Err(format!("an image became {ran} tokens, but {modelled} in the analytic model"));
            }
            workload.image = Some(image);
        }
        Ok(Some(workload))
    }
}
