//! Conclusions: one file per rule, and one line in the table below. A rule fires on evidence or not at all.
//!
//! What a finding would save is taken out of the books of lost time ([`Ledger`]) in the order of the table, so that no
//! two findings promise the same nanosecond: a rule says what it could save and under which causes that time stands, and
//! gets what is left there.

mod attention_not_flash;
mod cold_first_iteration;
mod cold_requests;
mod compilation;
mod copies;
mod data_loading;
mod dequantisation;
mod device_to_device_copies;
mod device_to_host_copies;
mod exposed_communication;
mod far_from_roofline;
mod float32_gemms;
mod gradient_copies;
mod host_synchronisation;
mod host_to_device_copies;
mod host_work;
mod idle;
mod idle_between_steps;
mod interrupted_decode;
mod kernel_gaps;
mod late_output;
mod launch_bound;
mod launch_gaps;
mod launches;
mod layout_copies;
mod logits_of_all_positions;
mod low_occupancy_gemms;
mod memory_allocation;
mod memory_bound_decode;
mod padded_batches;
mod preemption;
mod queueing;
mod recomputed_tokens;
mod run_to_run_variation;
mod slow_steps;
mod small_expert_gemms;
mod small_grids;
mod straggling_rank;
mod top_operator;
mod unexplained_delay;
mod unfused_elementwise;
mod utilisation_above_one;
mod vision_dominates_prefill;

use std::collections::{BTreeMap, BTreeSet};

use types::{
    Base, CollectiveSummary, DeviceTime, EstimatedSaving, Fact, Finding, IdleCause, Nanos, RankArrivals, RunKind,
    RunKindName, Severity, Stage, Steps,
};

use crate::device::{DeviceRecords, StageWork, WorkGroup};
use crate::evidence::PricedOperator;
use crate::loss::{Cause, Ledger};
use crate::operators::priced::Sum;
use crate::pressure::{Cold, Pressure};
use crate::replay::{Change, CopyFate, Replays};
use crate::scope::Scope;
use crate::statistics::share;
use crate::subject::Subject;
use crate::timings::{Timings, rounded};
use crate::utilisation::Utilisation;

/// Share of the run that rounds to less than 0.1%: saving that little is nothing to recommend.
const NOTHING: f64 = 0.0005;
/// Share of the run that does not matter, whatever it is of the part of the run that it lies in.
const LITTLE: f64 = 0.01;

/// Share of the run that a finding about the time outside stages must save to be said: that time is mostly start and end of a
/// recording, and a large share of little.
const OUTSIDE_WORTH_SAYING: f64 = 0.01;

/// The fact that says what share of the requests' latency a finding is about.
const LATENCY_SHARE: &str = "latency_share";

/// A rule: its name, and what it finds in a run.
type Rule = (&'static str, Check);

/// What a rule looks at.
#[derive(Clone, Copy)]
enum Check {
    /// The run as a whole.
    Whole(fn(&Run<'_>) -> Option<Found>),
    /// Each part of it, where device work was traced.
    Part(fn(&Run<'_>, &DeviceRecords, Scope, &StageWork) -> Option<Found>),
    /// Whatever it likes.
    Any(fn(&Run<'_>) -> Vec<Found>),
}

impl Check {
    fn found(self, run: &Run<'_>) -> Vec<Found> {
        match (self, run.device) {
            (Self::Whole(check), _) => check(run).into_iter().collect(),
            (Self::Part(check), Some(device)) => {
                device.stages.iter().filter_map(|(scope, work)| check(run, device, *scope, work)).collect()
            }
            (Self::Part(_), None) => Vec::new(),
            (Self::Any(check), _) => check(run),
        }
    }
}

/// Every rule. What a finding saves as a share of the run is filled in afterwards, the same way for all.
const RULES: [Rule; 40] = [
    (utilisation_above_one::RULE, Check::Any(utilisation_above_one::check)),
    (cold_first_iteration::RULE, Check::Whole(cold_first_iteration::check)),
    (slow_steps::RULE, Check::Whole(slow_steps::check)),
    (compilation::RULE, Check::Part(compilation::check)),
    (data_loading::RULE, Check::Part(data_loading::check)),
    (host_work::RULE, Check::Part(host_work::check)),
    (straggling_rank::RULE, Check::Whole(straggling_rank::check)),
    (exposed_communication::RULE, Check::Whole(exposed_communication::check)),
    (run_to_run_variation::RULE, Check::Any(run_to_run_variation::check)),
    (vision_dominates_prefill::RULE, Check::Whole(vision_dominates_prefill::check)),
    (recomputed_tokens::RULE, Check::Whole(recomputed_tokens::check)),
    (logits_of_all_positions::RULE, Check::Whole(logits_of_all_positions::check)),
    (launch_bound::RULE, Check::Any(launch_bound::check)),
    (host_synchronisation::RULE, Check::Any(host_synchronisation::check)),
    (memory_allocation::RULE, Check::Part(memory_allocation::check)),
    (host_to_device_copies::RULE, Check::Any(host_to_device_copies::check)),
    (device_to_host_copies::RULE, Check::Whole(device_to_host_copies::check)),
    (device_to_device_copies::RULE, Check::Whole(device_to_device_copies::check)),
    (gradient_copies::RULE, Check::Whole(gradient_copies::check)),
    (dequantisation::RULE, Check::Part(dequantisation::check)),
    (unfused_elementwise::RULE, Check::Part(unfused_elementwise::check)),
    (attention_not_flash::RULE, Check::Part(attention_not_flash::check)),
    (small_expert_gemms::RULE, Check::Part(small_expert_gemms::check)),
    (layout_copies::RULE, Check::Part(layout_copies::check)),
    (float32_gemms::RULE, Check::Part(float32_gemms::check)),
    (low_occupancy_gemms::RULE, Check::Part(low_occupancy_gemms::check)),
    (small_grids::RULE, Check::Part(small_grids::check)),
    (padded_batches::RULE, Check::Whole(padded_batches::check)),
    (launch_gaps::RULE, Check::Any(launch_gaps::check)),
    (kernel_gaps::RULE, Check::Any(kernel_gaps::check)),
    (unexplained_delay::RULE, Check::Any(unexplained_delay::check)),
    (memory_bound_decode::RULE, Check::Whole(memory_bound_decode::check)),
    (far_from_roofline::RULE, Check::Any(far_from_roofline::check)),
    (top_operator::RULE, Check::Whole(top_operator::check)),
    (cold_requests::RULE, Check::Whole(cold_requests::check)),
    (queueing::RULE, Check::Whole(queueing::check)),
    (preemption::RULE, Check::Whole(preemption::check)),
    (interrupted_decode::RULE, Check::Whole(interrupted_decode::check)),
    (late_output::RULE, Check::Whole(late_output::check)),
    (idle_between_steps::RULE, Check::Whole(idle_between_steps::check)),
];

/// Rules about when a device did nothing, or nothing else, or what directly followed what: where kernels are missing, that is not known.
const OF_ALL_WORK: [&str; 13] = [
    compilation::RULE,
    data_loading::RULE,
    host_work::RULE,
    exposed_communication::RULE,
    launch_bound::RULE,
    host_synchronisation::RULE,
    memory_allocation::RULE,
    host_to_device_copies::RULE,
    device_to_host_copies::RULE,
    launch_gaps::RULE,
    kernel_gaps::RULE,
    unexplained_delay::RULE,
    unfused_elementwise::RULE,
];

/// A finding, under which causes the time stands that it would save, and the change that would save it.
pub(crate) struct Found {
    finding: Finding,
    claim: Claim,
    change: Option<Change>,
}

/// What a finding takes out of the books.
pub(crate) enum Claim {
    /// It promises no time.
    Nothing,
    /// Time lost to these causes.
    Lost(Vec<Cause>),
    /// The whole time of work that need not be done: what is lost to these causes, and then the work itself.
    Work(Vec<Cause>),
    /// The time of work in all parts of the run, of which each has this much: the change is made in all of them.
    Everywhere(BTreeMap<Scope, Nanos>),
}

impl Found {
    /// A finding that promises no time.
    fn plain(finding: Finding) -> Self {
        Self::new(finding, Claim::Nothing)
    }

    /// One that claims time.
    fn new(finding: Finding, claim: Claim) -> Self {
        Self { finding, claim, change: None }
    }

    /// The same; its saving is that of a change in its part of the run.
    fn replayed(self, change: Change) -> Self {
        Self { change: Some(change), ..self }
    }

    /// The part of the run that it is about; absent where that is all of them.
    fn scope(&self, ledger: &Ledger) -> Option<Scope> {
        let without_stage = || ledger.stages().iter().map(|one| one.stage).find(|scope| scope.stage().is_none());
        let of_part = || self.finding.stage.map(Scope::of).or_else(without_stage).unwrap_or(Scope::Run);
        (!matches!(self.claim, Claim::Everywhere(_))).then(of_part)
    }
}

/// What rules look at.
pub(crate) struct Run<'a> {
    pub(crate) subject: &'a Subject,
    /// What kind of run the trace shows; absent without one.
    pub(crate) kind: Option<&'a RunKind>,
    /// Operators that our own engine timed.
    pub(crate) operators: &'a [PricedOperator],
    /// Device work, where it was traced.
    pub(crate) device: Option<&'a DeviceRecords>,
    /// How the time of each device divides; empty without a timeline.
    pub(crate) device_time: &'a [DeviceTime],
    /// Steps of the trace.
    pub(crate) steps: Option<&'a Steps>,
    /// Collectives of the trace, longest first.
    pub(crate) collectives: &'a [CollectiveSummary],
    /// When ranks reach them, where several were recorded.
    pub(crate) arrivals: Option<&'a RankArrivals>,
    /// Without instruments.
    pub(crate) timings: &'a Timings<'a>,
    /// With them.
    pub(crate) profiled: &'a Timings<'a>,
    /// Utilisation of the stages.
    pub(crate) used: &'a BTreeMap<Stage, Utilisation>,
    /// What was lost, before anything is claimed.
    pub(crate) lost: &'a Ledger,
    /// What held requests up, where a load on a server is known.
    pub(crate) pressure: Option<&'a Pressure>,
    /// The cold start of a load.
    pub(crate) cold: Option<Cold>,
    /// How many measured inferences other work disturbed, of how many; absent where none was.
    pub(crate) disturbed: Option<[u64; 2]>,
    /// Its timelines, ready to be replayed.
    pub(crate) replays: &'a Replays<'a>,
}

impl<'a> Run<'a> {
    /// Operators of a stage and of those nested in it.
    fn operators(&self, stage: Stage) -> impl Iterator<Item = &'a PricedOperator> {
        let inside = move |found: Stage| found.is_within(stage);
        self.operators.iter().filter(move |operator| operator.record.stage.is_some_and(inside))
    }

    /// Time of the run that its books are of: where device work was traced, that of the traced pass.
    pub(crate) fn wall(&self) -> Option<Nanos> {
        match self.device {
            Some(_) => Some(self.lost.stages().iter().map(|stage| stage.wall).sum()).filter(|wall| *wall > Nanos::ZERO),
            None => self.timings.wall(),
        }
    }

    fn kind(&self) -> Option<RunKindName> {
        self.kind.map(|kind| kind.kind)
    }

    /// Whether its program calls HIP, as on AMD devices, and not CUDA.
    fn is_hip(&self) -> bool {
        self.device.is_some_and(|device| device.is_hip)
    }

    /// Whether any part of it launches graphs.
    fn launches_graphs(&self) -> bool {
        self.device.is_some_and(|device| device.stages.values().any(|work| work.graphs.launches > 0))
    }

    /// Whether a time does not matter to the run.
    fn is_little(&self, time: Nanos) -> bool {
        let whole = self.wall().unwrap_or_default();
        share(time.get() as f64, whole.get() as f64).is_some_and(|part| part < LITTLE)
    }

    /// Time of work that `which` chooses, by part of the run: its part of the wall time.
    fn time_of(&self, which: impl Fn(&WorkGroup) -> bool) -> BTreeMap<Scope, Nanos> {
        let mut times = BTreeMap::new();
        for group in self.device.iter().flat_map(|device| &device.groups).filter(|group| which(group)) {
            *times.entry(group.scope).or_default() += group.run;
        }
        times
    }

    /// Time of a stage in the instrumented pass; its operators where the pass was not timed as a whole.
    fn instrumented(&self, stage: Stage) -> Nanos {
        self.profiled.total(stage).unwrap_or_else(|| Sum::of(self.operators(stage)).time)
    }

    /// A time of the instrumented pass, carried over to all measured instances: instruments slow a stage down evenly, as
    /// far as this run tells, so the share of the stage stays what it is.
    fn carried_over(&self, time: Nanos, stage: Stage) -> Option<Nanos> {
        let part = share(time.get() as f64, self.instrumented(stage).get() as f64)?;
        Some(rounded(part * self.timings.total(stage)?.get() as f64))
    }
}

/// A change to replay, and the scope it is made in; everywhere without one.
pub(crate) type PlacedChange = (Change, Option<Scope>);

/// Everything that fires, what matters most and saves most first; the books with what they claim; and the changes that the
/// findings propose, each with its part of the run.
pub(crate) fn all(run: &Run<'_>) -> (Vec<Finding>, Ledger, Vec<PlacedChange>) {
    let whole = run.replays.basis().or(run.wall()).unwrap_or_default();
    let mut ledger = run.lost.clone();
    let (mut findings, mut changes) = (Vec::new(), Vec::new());
    let misses_kernels = run.device.is_some_and(|device| device.misses_kernels);
    for (rule, check) in RULES.into_iter().filter(|(rule, _)| !misses_kernels || !OF_ALL_WORK.contains(rule)) {
        for found in check.found(run) {
            let before = ledger.clone();
            let saving = saving(run, &mut ledger, rule, &found);
            let scope = found.scope(&ledger);
            let Found { mut finding, change, .. } = found;
            finding.saving = saving;
            let is_replayed = finding.saving.saves_low_ns.is_some();
            let saves = finding.saving.saves_ns.filter(|saves| *saves > Nanos::ZERO || is_replayed);
            finding.saving.saves_ns = saves;
            finding.saving.saves_share = saves.and_then(|saves| share(saves.get() as f64, whole.get() as f64));
            let is_outside = finding.quantities.get("where") == Some(&Fact::Part(Base::OutsideStages));
            if is_outside && finding.saving.saves_share.is_none_or(|share| share < OUTSIDE_WORTH_SAYING) {
                ledger = before;
                continue;
            }
            let is_bounded = finding.saving.at_stake() > saves;
            if finding.saving.saves_share.is_some_and(|share| share < NOTHING) && !is_bounded {
                finding.severity = finding.severity.min(Severity::Info);
            }
            changes.extend(change.filter(|_| saves.is_some()).map(|change| (change, scope)));
            findings.push(finding);
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, at_stake(finding, whole))));
    (findings, ledger, changes)
}

/// What a finding is about: what acting on it could save; of latency, its share of the run.
fn at_stake(finding: &Finding, whole: Nanos) -> Option<Nanos> {
    let of_latency = finding.quantities.share(LATENCY_SHARE).map(|part| rounded(part * whole.get() as f64));
    // Idle time that nothing explains is worth as much attention as time that a change could save.
    finding.saving.at_stake().or(of_latency).max(finding.quantities.time(idle::RECURS))
}

/// What a finding saves: by replay where its change can be replayed, and never more than the books still hold.
fn saving(run: &Run<'_>, ledger: &mut Ledger, rule: &'static str, found: &Found) -> EstimatedSaving {
    let Found { finding, claim, .. } = found;
    let scope = found.scope(ledger);
    let Some(at_most) = finding.saving.saves_ns else { return finding.saving.clone() };
    let replayed = found.change.as_ref().and_then(|change| Some((change, run.replays.saving(change, scope)?)));
    let Some((change, replayed)) = replayed else {
        return EstimatedSaving::at_most(granted(ledger, rule, scope, claim, at_most));
    };
    // The books are of the traced pass, and so is what is taken out of them.
    let wanted = replayed.traced.min(at_most);
    let part = share(granted(ledger, rule, scope, claim, wanted).get() as f64, replayed.traced.get() as f64);
    let [low, high] = [replayed.low, replayed.high].map(|end| rounded(end.get() as f64 * part.unwrap_or(0.0).min(1.0)));
    let mut assumes = change.assumes();
    // Device work that nothing runs beside could save all its time, but for a host that takes as long.
    let is_held_up = matches!(claim, Claim::Everywhere(_)) && high < Nanos::new(at_most.get() / 2);
    // Copies may be more than there are kernels to hide them behind: then they are at stake, and no bound is said.
    let name = if matches!(change, Change::Copies(_, CopyFate::Hidden)) { "at_stake" } else { "at_most" };
    assumes.facts = assumes.facts.with_known(name, is_held_up.then_some(at_most));
    if run.replays.shows_waits() {
        return EstimatedSaving::replayed(low, high, assumes);
    }
    // Where the trace does not show the host's waits, what device work holds up is not known: up to all of it. And a host
    // without calls may have waited, so that nothing is saved by doing its work elsewhere.
    match change {
        Change::WithoutHost(IdleCause::HostWork) => {
            assumes.facts = assumes.facts.with_if("may_have_waited", true);
            EstimatedSaving::replayed(Nanos::ZERO, high, assumes)
        }
        change if change.is_of_device() => {
            let most = granted(ledger, rule, scope, claim, (at_most - wanted).max(Nanos::ZERO));
            assumes.facts = assumes.facts.with_if("waits_unknown", true);
            EstimatedSaving::replayed(low, high + most, assumes)
        }
        _ => EstimatedSaving::replayed(low, high, assumes),
    }
}

/// How much of what a finding could save nobody else has claimed.
fn granted(ledger: &mut Ledger, rule: &'static str, scope: Option<Scope>, claim: &Claim, wanted: Nanos) -> Nanos {
    let scope = scope.unwrap_or(Scope::Run);
    match claim {
        Claim::Nothing => Nanos::ZERO,
        Claim::Lost(causes) => ledger.claim(rule, scope, |cause| causes.contains(cause), wanted),
        Claim::Work(causes) => {
            let lost = ledger.claim(rule, scope, |cause| causes.contains(cause), wanted);
            lost + work(ledger, rule, scope, wanted - lost)
        }
        Claim::Everywhere(times) => {
            // Each part gives what it has of this work; what is left over, whoever has room.
            let scopes: BTreeSet<Scope> = ledger.stages().iter().map(|one| one.stage).collect();
            let held = |scope: Scope| times.get(&scope).copied().unwrap_or_default();
            let shares = scopes.iter().map(|scope| (*scope, held(*scope)));
            let rest = scopes.iter().map(|scope| (*scope, wanted));
            let mut open = wanted;
            for (scope, most) in shares.chain(rest) {
                open = open - work(ledger, rule, scope, most.min(open));
            }
            wanted - open
        }
    }
}

/// Claims work of a part of the run, which cannot save more than it took.
fn work(ledger: &mut Ledger, rule: &'static str, scope: Scope, wanted: Nanos) -> Nanos {
    let took: Nanos = ledger.stages().iter().filter(|one| one.stage == scope).map(|one| one.wall).sum();
    let room = took - ledger.lost(scope, |_| true);
    ledger.claim_work(rule, scope, wanted.min(room).max(Nanos::ZERO))
}

/// What a finding takes that promises at most the time of its own kernels: where their roofline time is known, what is lost to
/// their families, otherwise that time itself.
fn own_kernels(work: &StageWork, families: Vec<Cause>) -> Claim {
    match work.least {
        Some(_) => Claim::Lost(families),
        None => Claim::Work(Vec::new()),
    }
}

/// The stages that add up to a run.
fn top_stages(run: &Run<'_>) -> impl Iterator<Item = Stage> {
    run.timings.stages().filter(|stage| stage.top() == *stage)
}

/// Findings of one rule, for the tests of a rule: its neighbours may fire too.
#[cfg(test)]
fn fired(case: &crate::sample::Case, rule: &str) -> Vec<Finding> {
    case.metrics().conclusions.findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

/// The same for rules that look at device work.
#[cfg(test)]
fn fired_on_device(device: &DeviceRecords, rule: &str) -> Vec<Finding> {
    let wall = |(scope, work): (&Scope, &StageWork)| Some(crate::sample::timed(scope.stage()?, "", 0, work.wall.get()));
    let samples = device.stages.iter().filter_map(wall).collect();
    let case = crate::sample::Case { samples, ..crate::sample::case() };
    let findings =
        crate::metrics::with_device(&case.subject(), &case.evidence(), Some(device), Vec::new()).conclusions.findings;
    findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

/// The same for rules that look at what held requests up.
#[cfg(test)]
fn under(pressure: crate::pressure::Pressure, rule: &str) -> Option<Finding> {
    let requests = crate::evidence::JoinedRequests { pressure: Some(pressure), ..Default::default() };
    let case = crate::sample::case();
    let evidence = crate::evidence::Evidence { requests: Some(requests), ..case.evidence() };
    let findings = crate::metrics::metrics(&case.subject(), &evidence).conclusions.findings;
    findings.into_iter().find(|finding| finding.rule == rule)
}

/// The same for rules that look at the devices' time.
#[cfg(test)]
fn on_devices(times: &[DeviceTime], rule: &str) -> Vec<Finding> {
    let span: Nanos = times.iter().map(|time| time.span_ns).sum();
    let work = StageWork { wall: span, ..StageWork::default() };
    let device = DeviceRecords { stages: BTreeMap::from([(Scope::Run, work)]), ..DeviceRecords::default() };
    let case = crate::sample::case();
    let findings = crate::metrics::with_device(&case.subject(), &case.evidence(), Some(&device), times.to_vec());
    findings.conclusions.findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

/// A device that waits for so long of 10,000 ns, for one cause.
#[cfg(test)]
fn waiting_device(waiting: i64, cause: types::IdleCause) -> DeviceRecords {
    let waits = [(cause, Nanos::new(waiting))].into();
    let run = StageWork { wall: Nanos::new(10_000), waits, ..StageWork::default() };
    DeviceRecords { stages: [(Scope::Run, run)].into(), ..DeviceRecords::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_conclusions_has_every_rule() {
        let page = include_str!("../../../../docs/concepts/conclusions.md");
        let rows: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
        for (name, _) in RULES {
            assert!(rows.iter().any(|row| row.contains(&format!("`{name}`"))), "{name}");
        }
    }

    #[test]
    fn the_reference_lists_every_rule_and_no_other() {
        let page = include_str!("../../../../docs/reference/metrics.md");
        let section = page.split("## Findings").nth(1).unwrap().split("\n## ").next().unwrap();
        let listed: Vec<_> = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        assert_eq!(listed, RULES.map(|(name, _)| name));
    }
}
