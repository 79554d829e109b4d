//! Traces of one run, analysed.

use types::{Hardware, Metrics, UserError};

use crate::pipeline::requests::Requests;
use crate::pipeline::subject::{NamedSubject, ResolvedSubject, TracedRun, WorkloadSource, resolve, steps};
use crate::pipeline::trace::Traces;
use crate::pipeline::trace::regions::RegionChoice;

/// What came of it.
pub(crate) struct Imported {
    pub(crate) traces: Traces,
    pub(crate) metrics: Metrics,
    pub(crate) hardware: Option<Hardware>,
}

/// Analyses what was read, as a run of that name.
pub(crate) fn analyse(
    run_id: &str,
    mut traces: Traces,
    subject: &NamedSubject,
    named: Option<&Hardware>,
    regions: &RegionChoice,
    requests: Option<&Requests>,
) -> Result<Imported, UserError> {
    let requests = requests.map(|requests| requests.join(&mut traces)).transpose()?;
    let traced = TracedRun {
        run_id,
        engine: None,
        weights: None,
        model: subject.model.as_ref(),
        workload: WorkloadSource::Request(&subject.workload),
        named,
        config_dir: subject.config_dir.as_deref(),
        rate_may_lack: false,
    };
    let ResolvedSubject { subject: mut known, hardware, devices, quality, modules } = resolve(&traced, &traces)?;
    // A model that did not run, and so names nothing, has no work either.
    let model = subject.model.as_ref().filter(|_| known.run.model.is_some());
    if let Some((model, joined)) = model.zip(requests.as_ref())
        && let Some(found) = steps::modelled(model, &subject.workload, joined, &traces, hardware.as_ref())?
    {
        known.steps = found.steps;
        known.peak = known.peak.or(found.peak);
    }
    let mut evidence = traces.evidence(&devices);
    evidence.regions = traces.regions(regions);
    evidence.quality.extend(quality);
    evidence.requests = requests;
    let metrics = crate::pipeline::metrics::metrics(&known, &evidence);
    if let [only] = traces.placed.as_mut_slice() {
        only.modules = modules;
    }
    Ok(Imported { traces, metrics, hardware })
}
