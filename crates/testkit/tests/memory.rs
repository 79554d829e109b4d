//! How much memory an import takes for each kernel and for each event of the host, so that neither grows unseen. Lists that spill to
//! files count as well: they are no smaller there.

#[path = "fuzz/cost.rs"]
#[allow(dead_code, reason = "processor time is not looked at here")]
mod cost;
#[path = "../../../fuzz/bodies/import.rs"]
#[allow(dead_code, reason = "its claims are about inputs of any kind")]
mod import;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use flow::import::{ImportRequest, TablesRequest};

#[global_allocator]
static ALLOCATOR: cost::Counting = cost::Counting;

/// One import at a time: memory is that of the process.
static TURN: Mutex<()> = Mutex::new(());

/// The most bytes that an import with tables holds at once.
fn peak(trace: &Path, folder: &Path) -> usize {
    let tables = Some(TablesRequest::new(&folder.join("tables"), Some("job"), trace).unwrap());
    let request = ImportRequest { tables, ..import::request(trace) };
    let run = import::run(&folder.join("run"));
    let (imported, cost) = cost::measured(|| flow::import::import(&request, run, "", &mut |_| {}));
    assert_eq!(imported.unwrap().missing, Vec::<String>::new());
    cost.memory
}

/// Bytes that each of `count` adds, by traces with that many and with twice as many: lists that grow by doubling have the same share of
/// empty room in both.
fn each(count: usize, make: impl Fn(&Path, usize)) -> usize {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let [fewer, more] = [count, 2 * count].map(|count| {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), count);
        peak(&folder.path().join("rank0.json"), folder.path())
    });
    (more - fewer) / count
}

#[test]
fn a_kernel_and_its_launch_take_a_bounded_number_of_bytes() {
    // 512 in two threads; it was 640 with nodes of 96 bytes and lists that kept the room they grew with.
    const BYTES: usize = 560;
    let bytes = each(20_000, |folder, kernels| testkit::fleet::write(folder, [1, 10, kernels / 10], &[]).unwrap());
    println!("{bytes} bytes for each kernel");
    assert!(bytes <= BYTES, "{bytes} bytes for each kernel");
}

#[test]
fn an_event_of_the_host_takes_a_bounded_number_of_bytes() {
    // A row has 40. While a trace as small as this is read, its stretches are there beside the whole, and a list that grows counts
    // twice: 194 in two threads.
    const BYTES: usize = 220;
    let bytes = each(50_000, |folder, events| fs::write(folder.join("rank0.json"), host_events(events)).unwrap());
    println!("{bytes} bytes for each event of the host");
    assert!(bytes <= BYTES, "{bytes} bytes for each event of the host");
}

/// Operators in Python functions, none of which launches anything, beside one kernel.
fn host_events(count: usize) -> String {
    let mut trace = "{\"schemaVersion\":1,\"traceEvents\":[\
        {\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{\"correlation\":1}},\
        {\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":3,\"dur\":1,\"args\":{\"device\":0,\"stream\":7,\"correlation\":1}}"
        .to_owned();
    for number in 0..count {
        let (category, name) = match number % 4 {
            0 => ("python_function", "model.py(117): forward"),
            1 => ("python_function", "nn.Module: Linear_0"),
            2 => ("python_function", "linear.py(114): forward"),
            _ => ("cpu_op", "aten::linear"),
        };
        let (start, length) = (10 + number / 4 * 4 + number % 4, 4 - number % 4);
        let _ = write!(
            trace,
            ",\n{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":\"{name}\",\"pid\":1,\"tid\":1,\"ts\":{start},\"dur\":{length},\"args\":{{}}}}"
        );
    }
    trace.push_str("\n]}\n");
    trace
}
