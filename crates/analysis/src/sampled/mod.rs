//! The kernels that matter, and what hardware counters say of them.
//!
//! In come a timeline with its attribution, and the launches that a profiler replayed; out goes a row per kernel. `choice`
//! ranks the launches of the timeline by kernel, grid and block within a stage; `launch` reads the counters of replayed
//! launches; `join` puts those beside the chosen kernels (by `likeness` of their names where it must) as a
//! `counted_kernel` each; `model` puts the model's operations beside both. Running the profiler is left to `collect`,
//! reading its pages to `ingest`.

mod base_name;
mod choice;
mod counted_kernel;
mod join;
mod launch;
mod likeness;
mod model;

pub use choice::{Candidate, Choice, StageRange, choose};
pub use join::{KernelJoin, join};
pub use launch::CountedLaunch;
pub use model::lay_beside;

/// One kernel of ATen as two tools spell it, for tests.
#[cfg(test)]
mod spelled {
    pub(super) const NSYS: &str = "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<\
        at::native::CUDAFunctor_add<c10::BFloat16>>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)";
    pub(super) const NCU: &str = "void elementwise_kernel<128, 4, void gpu_kernel_impl_nocast<CUDAFunctor_add<BFloat16>>(\
        TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)";
}
