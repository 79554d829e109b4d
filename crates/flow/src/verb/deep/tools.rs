//! What this machine can do for a deep run, found out before anything is started.

use collect::environment::EnvironmentFacts;
use collect::tool::{InstalledTool, Shortfall, inject, ncu, nsys};
use types::{Collector, Environment, UserError};

use super::request::DeepRequest;
use crate::pipeline::device::machine::capture_with_facts;
use crate::pipeline::scratch::scratch_folder;

/// The tools of a deep run.
pub(super) struct Tools {
    pub(super) environment: Environment,
    /// Name of the first GPU.
    pub(super) gpu: String,
    /// Whether our own collector is tried first.
    pub(super) inject: bool,
    /// Records the timeline where our own collector does not; else why not.
    pub(super) nsys: Result<InstalledTool, Shortfall>,
    /// Reads counters; else why not.
    pub(super) ncu: Result<InstalledTool, Shortfall>,
}

impl Tools {
    /// Finds them. A machine without a GPU, or without anything to record a timeline, is refused here.
    pub(super) fn find(request: &DeepRequest) -> Result<Self, UserError> {
        let EnvironmentFacts { environment, gpu_problem, .. } =
            capture_with_facts(request.subject.config_dir.as_deref())?;
        let Some(gpu) = environment.gpus.first() else {
            let problem = gpu_problem.map_or_else(|| "none found".to_owned(), |problem| problem.to_string());
            return Err(UserError::failed(format!("no NVIDIA GPU to profile: {problem}")).hint(
                "check the machine with `llm-perf doctor`; measure on the CPU with `llm-perf profile`, or import a \
                 trace from another machine with `llm-perf import`",
            ));
        };
        let gpu = gpu.name.clone().unwrap_or_else(|| "unknown".to_owned());
        let cuda = environment.tools.cuda_driver.clone();
        let (nsys, ncu) = (nsys::serving(cuda.as_deref()), ncu::serving(cuda.as_deref()));
        let own = match request.collector {
            Collector::Nsys | Collector::None => Err("it was not requested".to_owned()),
            Collector::Auto | Collector::Inject | Collector::Both => check_own(),
        };
        match (&own, &nsys, request.collector) {
            (Err(why), _, Collector::Inject | Collector::Both) => {
                Err(UserError::failed(format!("cannot record a timeline: cannot load the built-in collector: {why}"))
                    .hint("use `--collector nsys`; see `llm-perf doctor`"))
            }
            (_, Err(short), Collector::Both) | (Err(_), Err(short), _) => {
                Err(UserError::failed(format!("cannot record a timeline: {}", short.found)).hint(&short.next_step))
            }
            _ => Ok(Self { environment, gpu, inject: own.is_ok(), nsys, ncu }),
        }
    }

    /// What is tried first, by name.
    pub(super) fn collector(&self) -> &'static str {
        if self.inject { "inject" } else { "nsys" }
    }
}

/// Whether our own collector is part of this program and can be loaded here.
fn check_own() -> Result<(), String> {
    if !inject::Injection::is_built_in() {
        return Err("it is not part of this build".to_owned());
    }
    let folder = scratch_folder().map_err(|error| error.to_string())?;
    inject::self_check(folder.path())
}
