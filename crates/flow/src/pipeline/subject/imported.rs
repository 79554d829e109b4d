//! Traces of one run, analysed.

use types::{Hardware, Metrics, UserError};

use crate::pipeline::subject::{NamedSubject, ResolvedSubject, TracedRun, WorkloadSource, resolve};
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
    traces: Traces,
    subject: &NamedSubject,
    named: Option<&Hardware>,
    regions: &RegionChoice,
) -> Result<Imported, UserError> {
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
    let ResolvedSubject { subject, hardware, devices, quality } = resolve(&traced, &traces)?;
    let mut evidence = traces.evidence(&devices);
    evidence.regions = traces.regions(regions);
    evidence.quality.extend(quality);
    let metrics = crate::pipeline::metrics::metrics(&subject, &evidence);
    Ok(Imported { traces, metrics, hardware })
}
