//! What people call each cause of idle time.

use types::IdleCause;

/// The same of a cause by its name in files; a name that is not known stays.
pub(crate) fn named(name: &str) -> &str {
    IdleCause::ALL.into_iter().find(|one| one.name() == name).map_or(name, |one| cause(one))
}

/// What a device waited for, as a noun.
pub(crate) const fn cause(cause: IdleCause) -> &'static str {
    match cause {
        IdleCause::Profiling => "the profiler itself",
        IdleCause::DataLoading => "data loading",
        IdleCause::Compiling => "compilation, graph capture or first use",
        IdleCause::Peer => "waiting for other processes",
        IdleCause::Synchronising => "host synchronisation",
        IdleCause::Allocating => "memory allocation",
        IdleCause::Copying => "copy calls",
        IdleCause::Launching => "launch overhead",
        IdleCause::HostWork => "host work",
        IdleCause::HostUnknown => "unrecorded host activity",
        IdleCause::NoWork => "waiting for work",
        IdleCause::BetweenKernels => "gaps between kernels",
        IdleCause::Queued => "delay between launch and start",
        IdleCause::NoRequest => "waiting for requests",
        IdleCause::NotRecorded => "unknown cause",
    }
}
