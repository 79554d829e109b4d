//! What runs a model, and which one suits this machine.

use collect::{environment, tool::torch};

types::named! {
    /// What runs a model.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Engine {
        /// Our own, in this program.
        Native = "native",
        /// PyTorch, in an interpreter of the user's.
        Torch = "torch",
    }
}

/// The engine for this machine, and why: PyTorch where it has a GPU to use, else our own, which runs on the CPU.
pub fn choose(python: Option<&str>) -> (Engine, String) {
    let gpu = match environment::first_gpu() {
        Ok(gpu) => gpu,
        Err(problem) => return (Engine::Native, problem.to_string()),
    };
    match torch::interpreter(python) {
        Ok(python) => (Engine::Torch, format!("found a GPU ({gpu}), and {} has torch", python.display())),
        Err(error) => (Engine::Native, format!("found a GPU ({gpu}), but {error}")),
    }
}
