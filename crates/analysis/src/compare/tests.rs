//! Claims about whole comparisons, on simulated runs whose truth is known.

mod properties;
mod requests;

use types::{
    Base, Change, ChangeVerdict, Comparison, DeviceId, DeviceTime, Environment, Fact, Facts, GateOutcome, IdleCause,
    IdleTime, InputImage, InputSet, KernelSummary, Nanos, Random, Remark, RunState, Sample, SchemaTag, Severity, Stage,
    StepBasis, StepSummary, Steps,
};

use super::{GateLimits, RunRecords, Sides, compare};
use crate::sample::{Case, case, operator, page, timed};

/// A run with these samples and one operator.
fn run(path: &str, samples: Vec<Sample>) -> RunRecords {
    let inputs = vec![page("a", 10, 4), page("b", 20, 4)];
    let operators = vec![operator("linear", "lm_head", Stage::Prefill, 1_000)];
    RunRecords {
        path: path.to_owned(),
        state: Some(RunState::Complete),
        reasons: Vec::new(),
        metrics: Case { samples, inputs, operators, ..case() }.metrics(),
        environment: None,
        inputs: None,
        forecasts: Default::default(),
    }
}

/// Repeats of inputs whose true times are given, in microseconds.
fn repeats(random: &mut Random, stage: Stage, inputs: &[(&str, f64)], count: u32, noise: f64) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (input, time) in inputs {
        for repeat in 0..count {
            let measured = time * 1e3 * (1.0 + noise * random.normal());
            samples.push(timed(stage, input, repeat, measured.round() as i64));
        }
    }
    samples
}

fn two(base: &RunRecords, with: &RunRecords) -> Comparison {
    compare(Sides { base: std::slice::from_ref(base), with: std::slice::from_ref(with) }, None)
}

fn stage(comparison: &Comparison, stage: Stage) -> &Change {
    comparison.stages.iter().find(|change| change.name == stage.name()).unwrap()
}

/// Two runs of two stages, the second slower by `change`, compared.
fn simulated(random: &mut Random, count: u32, noise: f64, change: f64) -> Comparison {
    let mut one = |factor: f64| {
        let mut samples = repeats(random, Stage::Prefill, &[("a", 40_000.0 * factor)], count, noise);
        samples.extend(repeats(random, Stage::Decode, &[("a", 9_000.0 * factor)], count, noise));
        samples
    };
    let (base, with) = (one(1.0), one(1.0 + change));
    two(&run("a", base), &run("b", with))
}

fn found(comparison: &Comparison, verdict: ChangeVerdict) -> bool {
    comparison.stages.iter().any(|change| change.verdict == verdict)
}

/// Why a row was not tested, by what follows `untested.`.
fn untested(reason: &str) -> Option<Remark> {
    Some(Remark::new(&format!("untested.{reason}"), Facts::new()))
}

#[test]
fn repeats_of_one_distribution_are_told_apart_as_rarely_as_stated() {
    const SIMULATED: usize = 200;
    let mut random = Random::new(1);
    let wrong = (0..SIMULATED).filter(|_| {
        let comparison = simulated(&mut random, 10, 0.02, 0.0);
        found(&comparison, ChangeVerdict::Slower) || found(&comparison, ChangeVerdict::Faster)
    });
    // Stated: at most 5% of tables, 10 of 200; three standard deviations (3.1 each) above that is chance no more.
    let wrong = wrong.count();
    assert!(wrong <= 19, "{wrong} of {SIMULATED}");
}

#[test]
fn a_change_of_five_percent_is_found_with_twenty_repeats_at_two_percent_noise() {
    const SIMULATED: usize = 100;
    let mut random = Random::new(2);
    // Stated: at least 90% with twenty, 70% with ten, where a single repeat that lies with the other side's is a doubt.
    for (repeats, least) in [(20, 90), (10, 70)] {
        for (change, verdict) in [(0.05, ChangeVerdict::Slower), (-0.05, ChangeVerdict::Faster)] {
            let right = (0..SIMULATED).filter(|_| {
                let comparison = simulated(&mut random, repeats, 0.02, change);
                stage(&comparison, Stage::Decode).verdict == verdict
            });
            let right = right.count();
            assert!(right >= least, "{verdict:?} with {repeats} repeats: {right} of {SIMULATED}");
        }
    }
}

#[test]
fn a_side_with_repeats_like_the_others_gives_no_verdict() {
    let [fast, slow] = [93.0, 138.0];
    let mostly = |usual: f64, once: f64| {
        [usual, usual + 0.4, once, usual + 0.2, usual + 0.3, usual - 0.1, usual + 0.5, usual + 0.1]
    };
    let (base, with) =
        ([of_command("a", &mostly(fast, slow + 1.0), 1, false)], [of_command("b", &mostly(slow, slow), 1, false)]);
    let row = compare(Sides { base: &base, with: &with }, None).commands[0].clone();
    assert_eq!(row.verdict, ChangeVerdict::NoEvidence);
    let facts = Facts::new().with_share("overlap", 0.125, Base::Itself);
    assert_eq!(row.untested, Some(Remark::new("untested.overlap", facts)));
    // Without that one repeat it is a change.
    let base = [of_command("a", &mostly(fast, fast), 1, false)];
    assert_eq!(compare(Sides { base: &base, with: &with }, None).commands[0].verdict, ChangeVerdict::Slower);
}

#[test]
fn inputs_that_differ_do_not_hide_a_change_of_each() {
    let mut random = Random::new(3);
    let inputs = |factor: f64| [("a", 10_000.0 * factor), ("b", 500_000.0 * factor)];
    let base = run("a", repeats(&mut random, Stage::Prefill, &inputs(1.0), 5, 0.005));
    let with = run("b", repeats(&mut random, Stage::Prefill, &inputs(1.02), 5, 0.005));
    let comparison = two(&base, &with);
    let change = stage(&comparison, Stage::Prefill);
    // 2% between inputs that are 50 times apart.
    assert_eq!(change.verdict, ChangeVerdict::Slower, "{change:?}");
    assert!((change.change.unwrap() - 0.02).abs() < 0.01, "{change:?}");
    assert_eq!((comparison.common_inputs, change.base.samples), (Some(2), 10));
}

#[test]
fn many_kernels_do_not_cry_wolf() {
    let mut random = Random::new(4);
    let mut one = |path: &str| {
        let mut one = run(path, vec![timed(Stage::Decode, "a", 0, 1_000)]);
        one.metrics.breakdown.kernels =
            (0..500).map(|number| kernel(number, 1e6 * (0.03 * random.normal()).exp())).collect();
        one
    };
    let (base, mut with) = ([one("a"), one("b"), one("c")], [one("d"), one("e"), one("f")]);
    let verdicts = |with: &[RunRecords; 3]| {
        let comparison = compare(Sides { base: &base, with }, None);
        let sure = comparison.kernels.iter().filter(|change| change.verdict != ChangeVerdict::NoEvidence);
        sure.map(|change| (change.name.clone(), change.verdict)).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&with), []);
    // One that really doubled stands out, and is first.
    with.iter_mut().for_each(|run| run.metrics.breakdown.kernels[7].total_ns = Nanos::new(40_000_000));
    assert_eq!(verdicts(&with), [("kernel 7".to_owned(), ChangeVerdict::Slower)]);
}

fn kernel(number: usize, nanoseconds: f64) -> KernelSummary {
    let total_ns = Nanos::new(nanoseconds as i64);
    KernelSummary {
        name: format!("kernel {number}"),
        short_name: format!("kernel {number}"),
        family: "other".to_owned(),
        stage: Some(Stage::Decode),
        device: DeviceId::cuda(0),
        calls: 3,
        total_ns,
        min_ns: total_ns,
        max_ns: total_ns,
        estimate: None,
    }
}

#[test]
fn one_pass_per_side_gives_a_change_without_a_verdict() {
    let base = run("a", vec![timed(Stage::Prefill, "a", 0, 1_000)]);
    let mut with = base.clone();
    with.metrics.breakdown.operators[0].self_ns = Nanos::new(1_500);
    let comparison = two(&base, &with);
    let change = &comparison.operators[0];
    assert!((change.change.unwrap() - 0.5).abs() < 1e-12);
    assert_eq!((change.interval, change.verdict), (None, ChangeVerdict::NoEvidence));
    assert_eq!(change.untested, untested("one-pass"));
    assert_eq!(comparison.stages[0].untested, untested("one-sample"));
}

#[test]
fn too_few_repeats_are_said_and_leave_a_gate_undecided() {
    let mut random = Random::new(5);
    let mut one = |path, time| run(path, repeats(&mut random, Stage::Decode, &[("a", time)], 3, 0.001));
    let (base, with) = ([one("a", 100.0)], [one("b", 150.0)]);
    let comparison = compare(Sides { base: &base, with: &with }, Some(0.05.into()));
    let change = &comparison.stages[0];
    let facts = Facts::new().with("base", 3_u64).with("with", 3_u64).with("inputs", 1_u64).with("needed", 4_u64);
    assert_eq!(change.untested, Some(Remark::new("untested.few-repeats", facts)));
    assert!(change.interval.unwrap().low > 0.4 && change.verdict == ChangeVerdict::NoEvidence);
    let gate = comparison.gate.unwrap();
    assert_eq!((gate.outcome, gate.reasons.len()), (GateOutcome::Undecided, 1));
}

#[test]
fn a_gate_fails_on_a_slower_stage_beyond_its_limit_and_on_nothing_else() {
    let mut random = Random::new(6);
    let mut one = |path, time| [run(path, repeats(&mut random, Stage::Decode, &[("a", time)], 10, 0.005))];
    let (base, slower, faster) = (one("a", 1_000.0), one("b", 1_100.0), one("c", 900.0));
    let outcome = |with: &[RunRecords], limit: f64| {
        let gate = compare(Sides { base: &base, with }, Some(limit.into())).gate.unwrap();
        (gate.outcome, gate.failed)
    };
    assert_eq!(outcome(&slower, 0.05), (GateOutcome::Failed, vec!["decode".to_owned()]));
    assert_eq!(outcome(&slower, 0.20), (GateOutcome::Passed, Vec::new()));
    assert_eq!(outcome(&faster, 0.05), (GateOutcome::Passed, Vec::new()));
    assert_eq!(outcome(&base, 0.0), (GateOutcome::Passed, Vec::new()));
    let hidden = |with: &[RunRecords]| compare(Sides { base: &base, with }, Some(0.0.into())).gate.unwrap().may_hide;
    let again = one_more(&mut Random::new(60));
    assert!(hidden(&again).is_some_and(|share| share > 0.0 && share < 0.05), "{:?}", hidden(&again));
    assert_eq!(hidden(&base), None, "a run cannot differ from itself");
    assert_eq!(hidden(&faster), None);
}

#[test]
fn a_baseline_of_several_runs_can_be_held_against_one() {
    let mut random = Random::new(7);
    let mut one = |path: &str, time: f64| {
        let drift = time * (1.0 + 0.004 * random.normal());
        run(path, repeats(&mut random, Stage::Decode, &[("a", drift)], 5, 0.02))
    };
    let base = [one("a", 1e3), one("b", 1e3), one("c", 1e3), one("d", 1e3), one("e", 1e3)];
    let comparison = compare(Sides { base: &base, with: &[one("f", 1.2e3)] }, Some(0.05.into()));
    assert_eq!(comparison.stages[0].verdict, ChangeVerdict::Slower, "{:?}", comparison.stages[0]);
    assert_eq!(comparison.gate.unwrap().outcome, GateOutcome::Failed);
    assert_eq!(
        compare(Sides { base: &base, with: &[one("g", 1e3)] }, None).stages[0].verdict,
        ChangeVerdict::NoEvidence
    );
}

#[test]
fn other_inputs_are_not_compared_and_common_ones_are() {
    let samples = |names: [&str; 2]| {
        names.iter().flat_map(|name| (0..6).map(|i| timed(Stage::Decode, name, i, 100 + i64::from(i)))).collect()
    };
    let (base, with) = (run("a", samples(["a", "b"])), run("b", samples(["b", "c"])));
    let comparison = two(&base, &with);
    assert_eq!((comparison.common_inputs, comparison.stages[0].base.samples), (Some(1), 6));
    let inputs = comparison.differences.iter().find(|difference| difference.aspect == "inputs").unwrap();
    assert_eq!((inputs.base.clone(), inputs.with.clone()), (vec!["a".to_owned()], vec!["c".to_owned()]));
    assert_eq!(inputs.severity, Severity::Warning);
    assert_eq!(comparison.operators[0].untested, untested("other-inputs"));
    let apart = two(&base, &run("c", samples(["x", "y"])));
    assert_eq!(apart.stages[0].untested, untested("no-common-input"));
    assert_eq!((apart.stages[0].change, apart.differences[0].severity), (None, Severity::Error));
}

#[test]
fn inputs_are_the_same_by_content_whatever_they_are_called() {
    let with_hash = |path: &str, name: &str, hash: &str| {
        let image = InputImage {
            name: name.to_owned(),
            path: name.to_owned(),
            width: None,
            height: None,
            bytes: None,
            sha256: Some(hash.to_owned()),
            category: None,
            used: true,
            problem: None,
        };
        let inputs = InputSet {
            command: None,
            files: Vec::new(),
            schema: SchemaTag::new(),
            dataset_root: ".".to_owned(),
            subset_filelist: None,
            count: 1,
            images: vec![image],
            prompts: Vec::new(),
        };
        let samples = (0..3).map(|i| timed(Stage::Decode, name, i, 100)).collect();
        RunRecords { inputs: Some(inputs), ..run(path, samples) }
    };
    let base = with_hash("a", "old.png", "1");
    assert_eq!(two(&base, &with_hash("b", "new.png", "1")).common_inputs, Some(1));
    assert_eq!(two(&base, &with_hash("b", "old.png", "2")).common_inputs, Some(0));
}

#[test]
fn differences_are_graded_and_the_gravest_comes_first() {
    let base = run("a", vec![timed(Stage::Decode, "a", 0, 100)]);
    let mut with = RunRecords { state: Some(RunState::Partial), reasons: vec!["no trace".to_owned()], ..base.clone() };
    with.metrics.run.weights = Some("checkpoint".to_owned());
    with.metrics.run.model = Some("another".to_owned());
    with.metrics.conditions.inputs[0].generated_tokens = 9;
    let mut machines = [environment("1"), environment("2")].into_iter();
    let (base, with) =
        (RunRecords { environment: machines.next(), ..base }, RunRecords { environment: machines.next(), ..with });
    let comparison = two(&base, &with);
    let found: Vec<_> = comparison.differences.iter().map(|one| (one.aspect.as_str(), one.severity)).collect();
    let expected = [
        ("generated tokens", Severity::Error),
        ("model", Severity::Error),
        ("status", Severity::Warning),
        ("weights", Severity::Warning),
        ("driver", Severity::Warning),
        ("source tree", Severity::Info),
    ];
    assert_eq!(found, expected);
    assert_eq!(comparison.differences[0].with, ["a: 9"]);
    assert_eq!(comparison.differences[2].with, ["a: partial, no trace"]);
}

fn environment(version: &str) -> Environment {
    let text = format!(
        r#"{{"schema": "llm-perf/environment/1", "captured_at": "", "tool_version": "0.1.0", "tool_features": [],
        "gpus": [], "tools": {{"driver": "{version}"}}, "frameworks": {{}}, "cpu": {{"architecture": "x86_64", "features": []}},
        "memory": {{}}, "operating_system": {{}}, "git": {{"revision": "{version}", "dirty": false}}, "variables": {{}}, "notes": []}}"#
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn stages_without_samples_are_compared_by_their_totals() {
    let mut base = run("a", vec![timed(Stage::Decode, "a", 0, 1_000)]);
    base.metrics.times.samples.clear();
    let mut with = base.clone();
    with.metrics.times.stages[0].wall_ns = Some(Nanos::new(1_100));
    let comparison = two(&base, &with);
    assert!((comparison.stages[0].change.unwrap() - 0.1).abs() < 1e-12);
    assert_eq!(comparison.stages[0].untested, untested("one-pass"));
    assert_eq!(comparison.common_inputs, None);
}

#[test]
fn a_stage_of_one_side_is_shown_and_not_compared() {
    let base = run("a", vec![timed(Stage::Prefill, "a", 0, 1_000), timed(Stage::Vision, "a", 0, 500)]);
    let with = run("b", vec![timed(Stage::Prefill, "a", 0, 1_000)]);
    let comparison = compare(Sides { base: &[base], with: &[with] }, Some(0.05.into()));
    let vision = stage(&comparison, Stage::Vision);
    assert_eq!((vision.base.time_ns, vision.with.time_ns), (Some(Nanos::new(500)), None));
    assert_eq!(vision.untested, untested("only-first"));
    assert_eq!(comparison.gate.unwrap().outcome, GateOutcome::Undecided);
}

#[test]
fn two_empty_runs_are_compared_without_a_word_too_many() {
    let comparison = compare(Sides { base: &[run("a", Vec::new())], with: &[run("b", Vec::new())] }, Some(0.05.into()));
    assert_eq!((comparison.stages.len(), comparison.common_inputs), (0, None));
    assert_eq!(comparison.gate.unwrap().reasons, [Remark::new("gate.nothing-measured", Facts::new())]);
}

#[test]
fn fewer_calls_of_the_same_kernel_are_not_faster_ones() {
    let with_calls = |path: &str, calls: u64| {
        let mut one = run(path, Vec::new());
        one.metrics.breakdown.kernels = vec![KernelSummary { calls, ..kernel(0, 1e3 * calls as f64) }];
        one
    };
    let comparison = two(&with_calls("a", 34), &with_calls("b", 30));
    let row = &comparison.kernels[0];
    assert!((row.change.unwrap() + 4.0 / 34.0).abs() < 1e-12, "{row:?}");
    assert!(row.change_per_call.unwrap().abs() < 1e-12, "{row:?}");
}

/// A trace without stages: steps of these microseconds, and idle time of one cause.
fn trace(path: &str, steps: &[i64], idle: i64) -> RunRecords {
    let mut one = run(path, Vec::new());
    let list = steps.iter().map(|time| StepSummary {
        name: "ProfilerStep".to_owned(),
        host_ns: Nanos::new(time * 1_000),
        wall_ns: Nanos::new(time * 1_000),
        device_ns: Nanos::new(time * 500),
        kernels: 1,
        ..StepSummary::default()
    });
    let (wall_ms, device_ms) = (None, None);
    one.metrics.times.steps = Some(Steps { basis: StepBasis::ProfilerSteps, wall_ms, device_ms, list: list.collect() });
    let (ns, compute_ns) = (Nanos::new(idle), Nanos::new(5_000));
    one.metrics.breakdown.device_time = vec![DeviceTime {
        busy_ns: compute_ns,
        idle_ns: ns,
        late_start_ns: Nanos::ZERO,
        compute_ns,
        idle: vec![IdleTime { cause: IdleCause::Launching, ns, longest_ns: ns, inside: Vec::new() }],
        ..crate::sample::device_time((compute_ns + ns).get())
    }];
    one
}

#[test]
fn runs_without_stages_are_compared_by_step_and_by_part_of_device_time() {
    let slower = two(&trace("a", &[100, 101, 99, 100, 102], 9_000), &trace("b", &[150, 151, 149, 150, 152], 2_000));
    assert!(slower.stages.is_empty());
    assert_eq!((slower.steps[0].name.as_str(), slower.steps[0].verdict), ("step", ChangeVerdict::Slower));
    assert!((slower.steps[0].change.unwrap() - 0.498).abs() < 0.01, "{:?}", slower.steps[0]);
    let largest = &slower.device_time[0];
    assert_eq!(largest.name, "idle: launching");
    assert_eq!((largest.base.time_ns, largest.with.time_ns), (Some(Nanos::new(9_000)), Some(Nanos::new(2_000))));
    // A run beside itself, and steps too few to know their noise.
    let same = two(&trace("a", &[100, 101, 99], 9_000), &trace("b", &[100, 101, 99], 9_000));
    assert_eq!(same.steps[0].verdict, ChangeVerdict::NoEvidence);
    let single = two(&trace("a", &[100], 9_000), &trace("b", &[200], 9_000));
    assert_eq!(single.steps[0].untested, untested("few-steps"));
}

fn one_more(random: &mut Random) -> [RunRecords; 1] {
    [run("again", repeats(random, Stage::Decode, &[("a", 1_000.0)], 10, 0.005))]
}

/// A run of a command with these wall times in milliseconds, each of which took so many megabytes.
fn of_command(path: &str, times: &[f64], megabytes: u64, disturbed: bool) -> RunRecords {
    let mut records = run(path, Vec::new());
    let one = |time: &f64| types::CommandRun {
        warmup: false,
        wall_ns: Nanos::new((time * 1e6) as i64),
        start_ns: None,
        user_ns: Nanos::new((time * 5e5) as i64),
        system_ns: Nanos::ZERO,
        peak_memory_bytes: Some(types::Bytes::new(megabytes << 20)),
        peak_memory_at_most_bytes: None,
        exit_code: Some(0),
        ended_for: None,
        left_running: 0,
        outlier: false,
        disturbance: Some(types::Disturbance {
            causes: if disturbed { vec!["others".to_owned()] } else { Vec::new() },
            ..types::Disturbance::default()
        }),
        devices: Vec::new(),
    };
    records.metrics.conditions.command = Some(types::CommandFacts {
        command: "sleep".to_owned(),
        runs: times.iter().map(one).collect(),
        wall_ms: None,
        start_cost_ns: None,
    });
    records
}

const STEADY: [f64; 8] = [100.0, 100.3, 100.1, 100.2, 100.15, 100.25, 100.05, 100.22];

#[test]
fn commands_are_compared_by_wall_time_processor_time_and_memory() {
    let base = [of_command("a", &STEADY, 100, false)];
    let with = [of_command("b", &STEADY.map(|time| time * 1.1), 103, false)];
    let comparison = compare(Sides { base: &base, with: &with }, Some(0.05.into()));
    let rows: Vec<_> = comparison.commands.iter().map(|row| (row.name.as_str(), row.verdict)).collect();
    assert_eq!(rows, [("command", ChangeVerdict::Slower), ("cpu", ChangeVerdict::Slower)]);
    assert_eq!(comparison.memory[0].name, "memory");
    assert_eq!(comparison.memory[0].base.bytes, Some(types::Bytes::new(100 << 20)));
    assert_eq!(comparison.gate.unwrap().failed, ["command"]);
    let named = |name: &str, limit| GateLimits { all: None, named: [(name.to_owned(), limit)].into() };
    let gate = |limits| compare(Sides { base: &base, with: &with }, Some(limits)).gate.unwrap();
    assert_eq!(gate(named("memory", 0.02)).failed, ["memory"]);
    assert_eq!(gate(named("memory", 0.05)).outcome, GateOutcome::Passed);
    let unknown = gate(named("decode", 0.05));
    assert_eq!(unknown.outcome, GateOutcome::Undecided);
    let Fact::Rows(known) = unknown.reasons[0].facts.get("known").unwrap() else { panic!("{:?}", unknown.reasons) };
    assert_eq!(
        (unknown.reasons[0].id.as_str(), &known[0]),
        ("gate.unknown-row", &Facts::new().with("name", "command"))
    );
}

#[test]
fn a_busy_machine_leaves_a_gate_undecided_and_a_change_without_a_verdict() {
    let base = [of_command("a", &STEADY, 100, false)];
    let with = [of_command("b", &STEADY.map(|time| time * 1.5), 100, true)];
    let comparison = compare(Sides { base: &base, with: &with }, Some(0.05.into()));
    assert_eq!(comparison.commands[0].verdict, ChangeVerdict::NoEvidence);
    let facts = Facts::new().with("disturbed", 8_u64).with("all", 8_u64).with("causes", "others");
    let disturbed = Remark::new("disturbed", facts);
    let busy = Remark::new("untested.busy", Facts::new().with("reason", disturbed.clone()));
    assert_eq!(comparison.commands[0].untested, Some(busy));
    let gate = comparison.gate.unwrap();
    assert_eq!(gate.outcome, GateOutcome::Undecided);
    let of_run = Remark::new("compare.disturbed", Facts::new().with("run", "b").with("reason", disturbed));
    assert!(gate.reasons.contains(&of_run), "{:?}", gate.reasons);
}

#[test]
fn a_run_on_both_sides_says_once_what_it_has_to_say() {
    let run = [of_command("a", &STEADY, 100, true)];
    let notes = compare(Sides { base: &run, with: &run }, None).notes;
    let said = |id: &str| notes.iter().filter(|note| note.id == id).count();
    assert_eq!([said("compare.same-run"), said("compare.disturbed")], [1, 1], "{notes:#?}");
}

#[test]
fn a_run_passes_every_gate_against_itself() {
    for alone in [of_command("a", &STEADY, 100, true), of_command("a", &[100.0], 1, false)] {
        let side = [alone];
        let comparison = compare(Sides { base: &side, with: &side }, Some(0.0.into()));
        assert_eq!(comparison.gate.unwrap().outcome, GateOutcome::Passed);
        assert!(comparison.commands.iter().all(|row| row.untested.is_none() && row.change == Some(0.0)));
    }
}

#[test]
fn a_run_whose_halves_differ_as_much_as_the_sides_gives_no_verdict() {
    let drift = [100.0, 100.3, 100.1, 100.2, 100.4, 104.0, 104.3, 104.1, 104.2, 104.4];
    let (base, with) =
        ([of_command("a", &drift, 1, false)], [of_command("b", &drift.map(|time| time * 1.06), 1, false)]);
    let comparison = compare(Sides { base: &base, with: &with }, None);
    let reason = comparison.commands[0].untested.clone().unwrap();
    let apart = reason.facts.share("apart").unwrap();
    assert!(reason.id == "untested.halves-differ" && (apart - 0.04).abs() < 0.0005, "{reason:?}");
    let with = [of_command("b", &drift.map(|time| time * 1.2), 1, false)];
    assert_eq!(compare(Sides { base: &base, with: &with }, None).commands[0].verdict, ChangeVerdict::Slower);
}

#[test]
fn kernels_of_two_tools_are_joined_by_their_short_names() {
    let with_kernels = |path: &str, kernels: &[(&str, Option<Stage>, i64)]| {
        let mut records = run(path, Vec::new());
        let kernel = |(name, stage, time): &(&str, Option<Stage>, i64)| types::KernelSummary {
            name: (*name).to_owned(),
            short_name: crate::kernel::short_name(name),
            family: "elementwise".to_owned(),
            stage: *stage,
            device: types::DeviceId::cuda(0),
            calls: 2,
            total_ns: Nanos::new(*time),
            min_ns: Nanos::new(1),
            max_ns: Nanos::new(1),
            estimate: None,
        };
        records.metrics.breakdown.kernels = kernels.iter().map(kernel).collect();
        [records]
    };
    let torch = with_kernels(
        "torch",
        &[
            ("void at::native::vectorized_elementwise_kernel<4, Add, float>(int, Add)", Some(Stage::Decode), 100),
            ("void at::native::vectorized_elementwise_kernel<4, Mul, float>(int, Mul)", Some(Stage::Prefill), 50),
            ("only_here", Some(Stage::Decode), 7),
            ("same", None, 9),
        ],
    );
    let nsys = with_kernels("nsys", &[("vectorized_elementwise_kernel", None, 160), ("same", None, 10)]);
    let comparison = compare(Sides { base: &torch, with: &nsys }, None);
    let rows: Vec<_> = comparison
        .kernels
        .iter()
        .map(|row| (row.name.as_str(), row.base.time_ns.map(Nanos::get), row.with.time_ns.map(Nanos::get)))
        .collect();
    assert_eq!(
        rows,
        [("elementwise", Some(150), Some(160)), ("only_here", Some(7), None), ("same", Some(9), Some(10)),]
    );
}
