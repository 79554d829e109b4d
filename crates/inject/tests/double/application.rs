//! Stands in for a CUDA application in tests. It loads the collector like the driver and NVTX do, then does what its
//! arguments say, one after the other:
//!
//! `cuda` initialises CUDA; `push:NAME` `pop` in the default domain, `push@DOMAIN:NAME` `pop@DOMAIN` in another;
//! `start:NAME` `end` the last one; `launch:NAME` `launch:NAME*COUNT` and `wait`, which do nothing without a double of CUPTI; `sleep:MS`; `thread(` ... `)` on a thread;
//! `fork(` ... `)` in a child that is waited for; `kill` with SIGKILL; `crash` with SIGABRT; `quit` with `_exit`;
//! `storm:COUNT` pushes and pops ranges with long names faster than anything can read them;
//! `profiler:start` `profiler:stop`; `graph:NAME*KERNELS` launches a graph;
//! `engine:NAME` loads a double of a library that launches graphs; `context:NUMBER` makes a context current on this thread;
//! `replay:MICROSECONDS@STREAM*COUNT` has the engine launch graphs, `parallel:THREADS*COUNT` does on so many threads, each on a stream of
//! its own; `capture:STREAM` `captured:STREAM`; `violations` prints what the double of the driver has counted;
//! `wanted` prints how much somebody wants to hear of the double of CUPTI;
//! `print:TEXT` for the test to wait on.
#![allow(clippy::missing_safety_doc)]

// SAFETY of all unsafe code here: functions of the collector and of NVTX's tables are called with the types the protocols give them, and texts outlive
// their calls.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::mem::transmute;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(code: c_int) -> !;
    fn raise(signal: c_int) -> c_int;
}

const SLOTS: usize = 16;
static CORE: [AtomicPtr<c_void>; SLOTS] = [const { AtomicPtr::new(null_mut()) }; SLOTS];
static CORE2: [AtomicPtr<c_void>; SLOTS] = [const { AtomicPtr::new(null_mut()) }; SLOTS];

#[repr(C)]
struct Callbacks {
    size: usize,
    table: unsafe extern "C" fn(c_int, *mut *const usize, *mut c_uint) -> c_int,
}

static CALLBACKS: Callbacks = Callbacks { size: size_of::<Callbacks>(), table };

unsafe extern "C" fn table(module: c_int, slots: *mut *const usize, count: *mut c_uint) -> c_int {
    let of = match module {
        1 => &CORE,
        5 => &CORE2,
        _ => return 0,
    };
    let places: Vec<usize> = of.iter().map(|slot| slot.as_ptr() as usize).collect();
    unsafe {
        *slots = places.leak().as_ptr();
        *count = SLOTS as c_uint;
    }
    1
}

unsafe extern "C" fn export(number: u32) -> *const c_void {
    if number == 1 { (&raw const CALLBACKS).cast() } else { null() }
}

#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    before: [u32; 7],
    message_type: i32,
    message: *const c_void,
}

fn attributes(message_type: i32, message: *const c_void) -> Attributes {
    Attributes { version: 3, size: 48, before: [0; 7], message_type, message }
}

fn library(variable: &str) -> *mut c_void {
    let Some(path) = std::env::var_os(variable) else { return null_mut() };
    let path = CString::new(path.into_encoded_bytes()).unwrap();
    let library = unsafe { dlopen(path.as_ptr(), 1) };
    assert!(!library.is_null(), "{variable} does not load");
    library
}

fn symbol(library: *mut c_void, name: &str) -> *mut c_void {
    let name = CString::new(name).unwrap();
    if library.is_null() { null_mut() } else { unsafe { dlsym(library, name.as_ptr()) } }
}

fn slot(of: &[AtomicPtr<c_void>; SLOTS], number: usize) -> *mut c_void {
    of[number].load(Ordering::Acquire)
}

/// What the application has open.
#[derive(Default)]
struct Application {
    domains: HashMap<String, usize>,
    strings: HashMap<String, usize>,
    started: Vec<u64>,
    engine: usize,
}

fn replay(engine: usize, microseconds: usize, stream: usize) {
    let launch: extern "C" fn(*mut c_void, *mut c_void) -> c_int = unsafe { transmute(engine) };
    launch(microseconds as *mut c_void, stream as *mut c_void);
}

fn set_context(number: usize) {
    let set = symbol(library("DOUBLE_DRIVER"), "cuCtxSetCurrent");
    unsafe { transmute::<*mut c_void, extern "C" fn(usize) -> c_int>(set)(number) };
}

impl Application {
    fn domain(&mut self, name: &str) -> *const c_void {
        let create = slot(&CORE2, 12);
        if create.is_null() {
            return null();
        }
        let create: unsafe extern "C" fn(*const c_char) -> *const c_void = unsafe { transmute(create) };
        let text = CString::new(name).unwrap();
        *self.domains.entry(name.to_owned()).or_insert_with(|| unsafe { create(text.as_ptr()) } as usize) as *const c_void
    }

    /// A range of a domain, by a registered string, as frameworks do.
    fn push_in(&mut self, domain: &str, name: &str) {
        let (push, register) = (slot(&CORE2, 4), slot(&CORE2, 10));
        if push.is_null() {
            return;
        }
        let domain = self.domain(domain);
        let register: unsafe extern "C" fn(*const c_void, *const c_char) -> *const c_void = unsafe { transmute(register) };
        let text = CString::new(name).unwrap();
        let string =
            *self.strings.entry(name.to_owned()).or_insert_with(|| unsafe { register(domain, text.as_ptr()) } as usize);
        let push: unsafe extern "C" fn(*const c_void, *const Attributes) -> c_int = unsafe { transmute(push) };
        unsafe { push(domain, &attributes(3, string as *const c_void)) };
    }

    fn step(&mut self, word: &str) {
        let (verb, rest) = word.split_once(':').unwrap_or((word, ""));
        let text = CString::new(rest).unwrap();
        match verb {
            "cuda" => {
                let start = symbol(library("CUDA_INJECTION64_PATH"), "InitializeInjection");
                if !start.is_null() {
                    unsafe { transmute::<*mut c_void, extern "C" fn() -> c_int>(start)() };
                }
            }
            "driver" => _ = library("DOUBLE_DRIVER"),
            "engine" => {
                let path = format!("{}/libengine_{rest}.so", std::env::var("DOUBLE_ENGINES").unwrap());
                let library = unsafe { dlopen(CString::new(path).unwrap().as_ptr(), 1) };
                self.engine = symbol(library, "engine_launch") as usize;
            }
            "context" => set_context(rest.parse().unwrap()),
            "replay" => {
                let (microseconds, rest) = rest.split_once('@').unwrap();
                let (stream, count) = rest.split_once('*').unwrap_or((rest, "1"));
                for _ in 0..count.parse::<u32>().unwrap() {
                    replay(self.engine, microseconds.parse().unwrap(), stream.parse().unwrap());
                }
            }
            "parallel" => {
                let (threads, count) = rest.split_once('*').unwrap();
                let (engine, count) = (self.engine, count.parse::<u32>().unwrap());
                let work = move |stream| {
                    set_context(0xc0);
                    for _ in 0..count {
                        replay(engine, 20, stream);
                        std::thread::sleep(std::time::Duration::from_micros(200));
                    }
                };
                let start = |number: usize| std::thread::spawn(move || work(100 + number));
                let threads: Vec<_> = (0..threads.parse().unwrap()).map(start).collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            }
            "capture" | "captured" => {
                let capture = symbol(library("DOUBLE_DRIVER"), "double_capture");
                let capture: extern "C" fn(usize, bool) = unsafe { transmute(capture) };
                capture(rest.parse().unwrap(), verb == "capture");
            }
            "violations" => {
                let violations = symbol(library("DOUBLE_DRIVER"), "double_violations");
                println!("{}", unsafe { transmute::<*mut c_void, extern "C" fn() -> u32>(violations)() });
            }
            "push" => {
                let push = slot(&CORE, 9);
                if !push.is_null() {
                    unsafe { transmute::<*mut c_void, extern "C" fn(*const c_char) -> c_int>(push)(text.as_ptr()) };
                }
            }
            "pop" => {
                let pop = slot(&CORE, 11);
                if !pop.is_null() {
                    unsafe { transmute::<*mut c_void, extern "C" fn() -> c_int>(pop)() };
                }
            }
            "start" => {
                let start = slot(&CORE, 4);
                let start: extern "C" fn(*const Attributes) -> u64 = unsafe { transmute(start) };
                self.started.push(start(&attributes(1, text.as_ptr().cast())));
            }
            "end" => {
                let end: extern "C" fn(u64) = unsafe { transmute(slot(&CORE, 7)) };
                end(self.started.pop().unwrap());
            }
            "launch" => {
                let (name, count) = rest.split_once('*').unwrap_or((rest, "1"));
                let name = CString::new(name).unwrap();
                let launch = symbol(library("LLM_PERF_INJECT_CUPTI"), "double_launch");
                if launch.is_null() {
                    return;
                }
                let launch: extern "C" fn(*const c_char) = unsafe { transmute(launch) };
                (0..count.parse::<u32>().unwrap()).for_each(|_| launch(name.as_ptr()));
            }
            "wait" => {
                let wait = symbol(library("LLM_PERF_INJECT_CUPTI"), "double_wait");
                if wait.is_null() {
                    return;
                }
                unsafe { transmute::<*mut c_void, extern "C" fn()>(wait)() };
            }
            "profiler" => {
                let profiler = symbol(library("LLM_PERF_INJECT_CUPTI"), "double_profiler");
                if profiler.is_null() {
                    return;
                }
                unsafe { transmute::<*mut c_void, extern "C" fn(bool)>(profiler)(rest == "start") };
            }
            "graph" => {
                let (name, nodes) = rest.split_once('*').unwrap();
                let graph = symbol(library("LLM_PERF_INJECT_CUPTI"), "double_graph");
                if graph.is_null() {
                    return;
                }
                let graph: extern "C" fn(*const c_char, u32) = unsafe { transmute(graph) };
                graph(CString::new(name).unwrap().as_ptr(), nodes.parse().unwrap());
            }
            "wanted" => {
                let wanted = symbol(library("LLM_PERF_INJECT_CUPTI"), "double_wanted");
                println!("{}", unsafe { transmute::<*mut c_void, extern "C" fn() -> u32>(wanted)() });
            }
            "storm" => {
                let push: extern "C" fn(*const c_char) -> c_int = unsafe { transmute(slot(&CORE, 9)) };
                let pop: extern "C" fn() -> c_int = unsafe { transmute(slot(&CORE, 11)) };
                let name = CString::new("x".repeat(1000)).unwrap();
                for _ in 0..rest.parse::<u32>().unwrap() {
                    push(name.as_ptr());
                    pop();
                }
            }
            "sleep" => std::thread::sleep(std::time::Duration::from_millis(rest.parse().unwrap())),
            "kill" => _ = unsafe { raise(9) },
            "crash" => _ = unsafe { raise(6) },
            "quit" => unsafe { _exit(0) },
            "print" => {
                println!("{rest}");
                std::io::stdout().flush().unwrap();
            }
            _ => match verb.split_once('@') {
                Some(("push", domain)) => self.push_in(domain, rest),
                Some(("pop", domain)) => {
                    let (pop, domain) = (slot(&CORE2, 5), self.domain(domain));
                    if !pop.is_null() {
                        unsafe { transmute::<*mut c_void, extern "C" fn(*const c_void) -> c_int>(pop)(domain) };
                    }
                }
                _ => panic!("{word} is nothing to do"),
            },
        }
    }

    fn run(&mut self, words: &[String]) {
        let mut at = 0;
        while at < words.len() {
            let inside = |verb: &str| {
                let body = &words[at + 1..];
                let mut depth = 0;
                let end = body.iter().position(|word| {
                    depth += i32::from(word.ends_with('('));
                    depth -= i32::from(word == ")");
                    depth < 0
                });
                body[..end.unwrap_or_else(|| panic!("{verb} has no end"))].to_vec()
            };
            match words[at].as_str() {
                "thread(" => {
                    let body = inside("thread(");
                    std::thread::spawn(move || Application::default().run(&body)).join().unwrap();
                    at += inside("thread(").len() + 1;
                }
                "fork(" => {
                    let body = inside("fork(");
                    let child = unsafe { fork() };
                    if child == 0 {
                        self.run(&body);
                        std::process::exit(0);
                    }
                    unsafe { waitpid(child, null_mut(), 0) };
                    at += body.len() + 1;
                }
                word => self.step(word),
            }
            at += 1;
        }
    }
}

fn main() {
    let nvtx = symbol(library("NVTX_INJECTION64_PATH"), "InitializeInjectionNvtx2");
    if !nvtx.is_null() {
        let start: extern "C" fn(unsafe extern "C" fn(u32) -> *const c_void) -> c_int = unsafe { transmute(nvtx) };
        start(export);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    Application::default().run(&words);
}
