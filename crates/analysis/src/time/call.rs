//! What the names of calls, operators and ranges say of the host.

use types::IdleCause;
use types::timeline::Timeline;

/// Annotation that PyTorch puts around the next batch of a data loader.
const DATA_LOADER: &str = "enumerate(DataLoader)";

/// What compilers of PyTorch and Triton call their own steps, in annotations and Python functions.
const COMPILERS: [&str; 7] = [
    "dynamo_timed",
    "torch/_dynamo/convert_frame.py",
    "torch/_inductor/compile_fx.py",
    "torch/_inductor/async_compile.py",
    "triton/compiler/compiler.py",
    "triton/runtime/autotuner.py",
    "torch/utils/cpp_extension.py",
];

/// Python files of PyTorch's profiler: what is inside their functions is the cost of recording, not of the program.
const PROFILER: [&str; 2] = ["torch/profiler/", "torch/autograd/profiler.py"];

/// What a range or an operator around the host says of it; most say nothing.
pub(crate) fn cause_of_name(name: &str) -> Option<IdleCause> {
    let is_of = |file: &str| name.split_once(file).is_some_and(|(above, _)| above.is_empty() || above.ends_with('/'));
    if PROFILER.into_iter().any(is_of) {
        return Some(IdleCause::Profiling);
    }
    if name.starts_with(DATA_LOADER) {
        return Some(IdleCause::DataLoading);
    }
    if COMPILERS.iter().any(|sign| name.contains(sign)) && !runs_what_was_compiled(name) {
        return Some(IdleCause::Compiling);
    }
    let is_peer = name.starts_with("gloo:") || name == "c10d::barrier" || name == "c10d::monitored_barrier_";
    is_peer.then_some(IdleCause::Peer)
}

/// Files of compilers also hold what runs compiled code: `triton/runtime/autotuner.py(201): run` is a launch.
fn runs_what_was_compiled(name: &str) -> bool {
    let Some((_, function)) = name.rsplit_once("): ") else { return false };
    let is_tuner = name.contains("triton/runtime/autotuner.py");
    matches!(function, "run" | "call" | "__call__" | "__getitem__" | "__getattribute__" | "launch_metadata")
        || (is_tuner && !function.contains("bench"))
}

/// How a Python function waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitKind {
    /// For time to pass.
    ForTime,
    /// For another thread or process, which may work for it, or for something to arrive.
    Unknown,
}

/// Built-in functions of Python that do nothing until something happens.
pub(crate) fn waits(name: &str) -> Option<WaitKind> {
    let function = name.strip_prefix("<built-in ")?;
    let called = function.strip_prefix("method ").or_else(|| function.strip_prefix("function "))?;
    let called = called.split([' ', '>']).next().unwrap_or(called);
    match called {
        "sleep" => Some(WaitKind::ForTime),
        "acquire" | "wait" | "waitpid" | "join" | "lock" | "get" | "poll" | "select" | "epoll_wait" | "recv"
        | "recv_into" | "read" | "accept" | "sched_yield" => Some(WaitKind::Unknown),
        _ => None,
    }
}

/// What a call of the CUDA or HIP runtime or driver keeps the host with; `None` for those that are part of launching.
pub(crate) fn cause_of_call(name: &str) -> Option<IdleCause> {
    let call = function(name)?;
    if call.contains("Synchronize") {
        return Some(IdleCause::Synchronising);
    }
    const LOADING: [&str; 7] =
        ["ModuleLoad", "LibraryLoad", "Link", "GraphInstantiate", "CtxCreate", "DevicePrimaryCtxRetain", "Init"];
    const ALLOCATION: [&str; 12] = [
        "Malloc",
        "Free",
        "MemAlloc",
        "MemFree",
        "HostAlloc",
        "HostRegister",
        "MemHostAlloc",
        "MemHostRegister",
        "MemCreate",
        "MemMap",
        "MemUnmap",
        "MemSetAccess",
    ];
    let starts = |names: &[&str]| names.iter().any(|start| call.starts_with(start));
    if name.starts_with("nvrtc") || starts(&LOADING) {
        return Some(IdleCause::Compiling);
    }
    if starts(&ALLOCATION) {
        return Some(IdleCause::Allocating);
    }
    starts(&["Memcpy", "Memset"]).then_some(IdleCause::Copying)
}

/// Whether a call launches a kernel or a graph.
pub(crate) fn is_kernel_launch(name: &str) -> bool {
    ["LaunchKernel", "LaunchCooperative", "GraphLaunch"].iter().any(|part| name.contains(part))
}

/// Calls that launch kernels or graphs. Without any device work, they tell that device activity was not recorded.
pub fn kernel_launches(timeline: &Timeline) -> u64 {
    let of_name: Vec<bool> = timeline.names.iter().map(|(_, name)| is_kernel_launch(name)).collect();
    timeline.calls.iter().filter(|call| of_name[call.name.index()]).count() as u64
}

/// A call around the capture of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureCall {
    Begin,
    End,
}

impl CaptureCall {
    pub(crate) fn of(name: &str) -> Option<Self> {
        let call = function(name)?;
        if call.starts_with("StreamBeginCapture") {
            return Some(Self::Begin);
        }
        call.starts_with("StreamEndCapture").then_some(Self::End)
    }
}

/// The name of a call without its interface: `cudaMalloc_v3020`, `cuMemAlloc_v2`, `hipMalloc`.
fn function(name: &str) -> Option<&str> {
    // nsys writes the version of the interface behind the name.
    let plain = name.split_once("_v").map_or(name, |(plain, _)| plain);
    ["cuda", "hip", "nvrtc", "cu"].iter().find_map(|interface| plain.strip_prefix(interface))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_their_names() {
        assert_eq!(cause_of_call("cudaStreamSynchronize_v3020"), Some(IdleCause::Synchronising));
        assert_eq!(cause_of_call("hipDeviceSynchronize"), Some(IdleCause::Synchronising));
        assert_eq!(cause_of_call("cuCtxSynchronize"), Some(IdleCause::Synchronising));
        assert_eq!(cause_of_call("cudaMalloc"), Some(IdleCause::Allocating));
        assert_eq!(cause_of_call("cuMemAlloc_v2"), Some(IdleCause::Allocating));
        assert_eq!(cause_of_call("hipMemcpyWithStream"), Some(IdleCause::Copying));
        assert_eq!(cause_of_call("cuMemsetD8Async"), Some(IdleCause::Copying));
        assert_eq!(cause_of_call("cuModuleLoadData"), Some(IdleCause::Compiling));
        assert_eq!(cause_of_call("hipGraphInstantiateWithFlags"), Some(IdleCause::Compiling));
        assert_eq!((cause_of_call("cudaLaunchKernel"), cause_of_call("hipGraphLaunch")), (None, None));
        assert_eq!(cause_of_call("aten::mm"), None);
    }

    #[test]
    fn functions_of_the_profiler_are_its_own_cost() {
        for name in ["torch/profiler/profiler.py(735): step", "/opt/lib/torch/autograd/profiler.py(410): __exit__"] {
            assert_eq!(cause_of_name(name), Some(IdleCause::Profiling), "{name}");
        }
        for name in ["ProfilerStep#3", "mytorch/profiler/run.py(1): main", "scheduler_profiler_mixin.py(4): step"] {
            assert_eq!(cause_of_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_compiled_region_that_runs_is_not_compiling() {
        assert_eq!(cause_of_name("_compile.compile_inner (dynamo_timed)"), Some(IdleCause::Compiling));
        assert_eq!(cause_of_name("Torch-Compiled Region: 0/0"), None);
        assert_eq!(cause_of_name("## Call CompiledFxGraph 1 ##"), None);
        assert_eq!(cause_of_name("TorchDynamo Cache Lookup"), None);
    }

    #[test]
    fn what_runs_compiled_code_does_not_compile() {
        assert_eq!(cause_of_name("triton/runtime/autotuner.py(201): run"), None);
        assert_eq!(cause_of_name("torch/_inductor/async_compile.py(9): __call__"), None);
        for name in ["triton/runtime/autotuner.py(120): _bench", "triton/compiler/compiler.py(226): compile"] {
            assert_eq!(cause_of_name(name), Some(IdleCause::Compiling), "{name}");
        }
    }

    #[test]
    fn only_sleep_shows_that_there_is_nothing_to_do() {
        assert_eq!(waits("<built-in function sleep>"), Some(WaitKind::ForTime));
        assert_eq!(waits("<built-in method poll of select.epoll object at 0x7f>"), Some(WaitKind::Unknown));
        assert_eq!((waits("<built-in function sorted>"), waits("queue.py(154): get")), (None, None));
    }

    #[test]
    fn only_the_framework_s_own_annotation_is_data_loading() {
        let name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        assert_eq!(cause_of_name(name), Some(IdleCause::DataLoading));
        assert_eq!(cause_of_name("## load_batch ##"), None);
    }
}
