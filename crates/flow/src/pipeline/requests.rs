//! Requests of a load: read from a file, and joined to the traces of their server.

use std::io::Read;
use std::path::{Path, PathBuf};

use analysis::{Apart, JoinedRequests};
use types::{LoadEnergy, Objective, RequestLog, UserError};

use crate::pipeline::trace::Traces;

/// A file of requests, and what is asked of them.
#[derive(Clone, Debug)]
pub struct RequestFile {
    /// What a load generator wrote.
    pub path: PathBuf,
    /// The latencies that are acceptable.
    pub objective: Option<Objective>,
}

/// Requests, read.
pub(crate) struct Requests {
    /// As their file is named.
    pub(crate) name: String,
    /// What their client recorded.
    pub(crate) log: RequestLog,
    /// The latencies that are acceptable.
    pub(crate) objective: Option<Objective>,
    /// The load without a profiler, where there was one.
    pub(crate) plain: Option<RequestLog>,
    /// Energy of the load whose latencies these are.
    pub(crate) energy: Option<LoadEnergy>,
}

impl Requests {
    /// Reads a file.
    pub(crate) fn read(file: &RequestFile) -> Result<Self, UserError> {
        let (name, log) = (file.path.display().to_string(), read_log(&file.path)?);
        Ok(Self { name, log, objective: file.objective, plain: None, energy: None })
    }

    /// Joins them to the steps of their server, and tells the traces when it had none.
    pub(crate) fn join(&self, traces: &mut Traces) -> Result<JoinedRequests, UserError> {
        let joined = analysis::join(&self.log, self.objective.as_ref(), &traces.timelines(&[]));
        // A load of our own is that of the trace, whoever else has sent requests; the results in a file may be of another run.
        if joined.apart == Some(Apart::NothingFits) && self.plain.is_none() {
            let error = UserError::usage(format!("{}: these requests are not those of the trace", self.name));
            return Err(error
                .because("under no clock offset do they account for the sequences of most steps")
                .hint("pass the results of the load that ran while the trace was recorded"));
        }
        traces.missing.extend(joined.apart.map(|apart| format!("{}: {}", self.name, missing(apart))));
        if let (Some(placed), Some(without)) = (traces.placed.get_mut(joined.timeline), &joined.without) {
            placed.attribution.without_requests = Some(without.clone());
            // The requests say better than pauses between steps when there was nothing to do.
            placed.attribution.between_steps = Default::default();
        }
        let joined = match &self.plain {
            Some(plain) => joined.beside(plain, self.objective.as_ref()),
            None => joined,
        };
        Ok(joined.with_energy(self.energy))
    }
}

const fn missing(apart: Apart) -> &'static str {
    match apart {
        Apart::NoSteps => "requests are not joined to steps: the trace has no steps of a server with device work",
        Apart::GraphsOnly => "requests are not joined to steps: only launches of CUDA graphs were timed",
        Apart::Unannotated => {
            "requests are not joined to steps: the server does not annotate its steps, and when output arrived fits no series of them"
        }
        Apart::SeveralServers => {
            "requests are not joined to steps: several processes have steps of their own that nothing annotates, so which one served a \
             request is not known"
        }
        Apart::NoTimes => "requests are not joined to steps: the file does not say when they started",
        Apart::NothingFits => {
            "requests are not joined to steps: under no clock offset do they account for the sequences of most steps; other clients of \
             the server, or a trace of only one of its replicas, can cause this"
        }
    }
}

/// What a load generator wrote.
pub(crate) fn read_log(path: &Path) -> Result<RequestLog, UserError> {
    Ok(ingest::requests::read(&path.display().to_string(), &bytes(path)?)?)
}

/// A file of a load, however large.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, UserError> {
    let mut contents = Vec::new();
    let read = collect::document::open(path).and_then(|mut file| file.read_to_end(&mut contents));
    read.map_err(UserError::io("read", path))?;
    Ok(contents)
}
