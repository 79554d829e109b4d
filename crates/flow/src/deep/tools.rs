//! What this machine can do for a deep run, found out before anything is started.

use collect::environment::Capture;
use collect::tool::{Found, Shortfall, ncu, nsys};
use types::Environment;

use super::error::DeepError;
use super::request::{Collector, DeepRequest};
use crate::environment::capture_with_facts;

/// The tools of a deep run.
pub(super) struct Tools {
    pub(super) environment: Environment,
    /// Name of the first GPU.
    pub(super) gpu: String,
    /// Records the timeline.
    pub(super) nsys: Found,
    /// Reads counters; else why not.
    pub(super) ncu: Result<Found, Shortfall>,
}

impl Tools {
    /// Finds them. A machine without a GPU, or without anything to record a timeline, is refused here.
    pub(super) fn find(request: &DeepRequest) -> Result<Self, DeepError> {
        let Capture { environment, gpu_problem, .. } = capture_with_facts(request.subject.config_dir.as_deref())?;
        let Some(gpu) = environment.gpus.first() else {
            let problem = gpu_problem.map_or_else(|| "none was found".to_owned(), |problem| problem.to_string());
            return Err(DeepError::NoGpu { problem });
        };
        let gpu = gpu.name.clone().unwrap_or_else(|| "unknown".to_owned());
        if request.collector == Collector::Inject {
            return Err(DeepError::NoCollector {
                found: "our own collector is not part of this build".to_owned(),
                next_step: "use `--collector nsys`".to_owned(),
            });
        }
        let cuda = environment.tools.cuda_driver.clone();
        let nsys = nsys::serving(cuda.as_deref())
            .map_err(|short| DeepError::NoCollector { found: short.found, next_step: short.next_step })?;
        let ncu = ncu::serving(cuda.as_deref());
        Ok(Self { environment, gpu, nsys, ncu })
    }
}
