//! The library that the CUDA driver loads into a process, to record what the process does on its devices.
//!
//! `CUDA_INJECTION64_PATH` and `NVTX_INJECTION64_PATH` both name it; the driver calls [`InitializeInjection`] when CUDA is
//! initialised, NVTX calls [`InitializeInjectionNvtx2`] at the first range. From then on:
//!
//! - device work comes from CUPTI's activity records, in buffers that are handed to the writer thread as they are;
//! - a call that launches work, and a range, is written by its own thread into that thread's log, a ring of fixed size;
//! - the writer thread turns both into `wire` records and appends them to the process's own file.
//!
//! Where only launches of CUDA graphs are asked for, `slots` sees them and `timing` puts events around them, without CUPTI.
//!
//! What it is doing is in one place, `state`: `nvtx` and `callback` are called by others and write it, `writer` reads it. `process`
//! starts and joins them.
//!
//! Where no folder is named it waits: nothing is recorded, and there is no thread, until `llm-perf attach` asks for it.
//!
//! Rules, because this runs inside other people's programs: nothing here waits for anything on a thread of the
//! application, but at exit and where the CUDA profiler is started (a tenth of a second), all memory has a fixed bound, what does not fit is dropped and counted, no
//! code path panics (a test looks for the panic handler in the library and must not find it), and a process that never
//! uses CUDA or NVTX never notices. What the records mean is left to `ingest`.
#![cfg_attr(not(test), no_std)]

mod activity;
mod attachment;
mod buffers;
mod callback;
mod catalogue;
mod cupti;
mod driver;
mod functions;
mod gate;
mod log;
mod number;
mod nvtx;
mod once;
mod path;
mod process;
mod request;
mod settings;
mod slots;
mod state;
mod step;
mod system;
mod texts;
mod timing;
mod window;
mod writer;

use core::ffi::{c_int, c_void};

/// Called by the CUDA driver when it is initialised. Always says yes: a collector that cannot collect is no reason for
/// the application not to run.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    if process::start() {
        gate::driver_started();
    } else {
        process::driver_started();
    }
    1
}

/// Called by NVTX at the first use of it in each library that carries it. Zero means that ranges are not wanted.
///
/// # Safety
///
/// `export_table` is the function NVTX passes, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(
    export_table: Option<unsafe extern "C" fn(u32) -> *const c_void>,
) -> c_int {
    let Some(export_table) = export_table else { return 0 };
    if !process::start() && !process::is_waiting() {
        return 0;
    }
    // SAFETY: by the contract of this function.
    c_int::from(unsafe { nvtx::attach(export_table) })
}

/// Cannot be reached: the compiler drops it where no code path panics, and the test
/// `no_code_path_of_the_library_panics` finds it if one does.
#[cfg(all(injected_library, not(test)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    system::abort(b"llm-perf collector: unreachable panic\n")
}
