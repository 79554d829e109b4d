//! The simulated server against runs of vLLM 0.24 on an H200: the steps it logged, and what its clients measured.
//!
//! `cargo test -p llm-perf-forecast --test serving_reference -- --nocapture` prints the table of errors in
//! `docs/concepts/capacity.md`.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::Read as _;

use llm_perf_forecast::serving::{
    Arrivals, Asked, Backend, DRAWS, Engine, Fleet, Load, LoadForecast, Part, RequestOutcome, Rules, Scheduler, Server,
    Started, StepPrices, VLLM,
};
use meter::WorkloadSettings;
use meter::hardware::Catalogue;
use network::Model;
use network::config::ModelConfig;
use serde_json::Value;
use testkit::need::{Need, reference};
use types::{AttentionKind, DeviceCalibration, ForecastRange, LogitsKind, Objective};

/// What a client of `vllm bench serve` measured, in the order of sending; times in milliseconds.
struct Measured {
    sent: Vec<f64>,
    asked: Vec<Asked>,
    /// Place in the client's file.
    place: Vec<usize>,
    requests: Vec<RequestOutcome<f64>>,
}

fn json(path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(reference("serving").join(path)).unwrap()).unwrap()
}

fn measured(path: &str) -> Measured {
    let file = json(path);
    let list = |key: &str| numbers(&file[key]);
    let (start, ttft) = (list("start_times"), list("ttfts"));
    let (input, output) = (list("input_lens"), list("output_lens"));
    let mut place: Vec<usize> = (0..start.len()).collect();
    place.sort_by(|a, b| start[*a].total_cmp(&start[*b]));
    let request = |at: &usize| {
        let rest = numbers(&file["itls"][*at]).iter().sum::<f64>();
        let gaps = (output[*at] - 1.0).max(1.0);
        RequestOutcome { ttft: ttft[*at] * 1e3, tpot: rest * 1e3 / gaps, e2el: (ttft[*at] + rest) * 1e3 }
    };
    let asked = |at: &usize| Asked { input: input[*at] as u64, output: output[*at] as u64, pieces: Vec::new() };
    Measured {
        sent: place.iter().map(|at| start[*at] * 1e3).collect(),
        asked: place.iter().map(asked).collect(),
        requests: place.iter().map(request).collect(),
        place,
    }
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn rules(kv_blocks: u64) -> Rules {
    let (mixing, block_size) = (VLLM.mixing, VLLM.block_size);
    Rules { mixing, max_num_seqs: 1024, max_num_batched_tokens: 8192, kv_blocks, block_size, piece: 0 }
}

/// Share of the steps that the server logged which the scheduler makes too, when it is driven by the times of the log.
fn agreement(load: &str) -> f64 {
    let bytes = std::fs::read(reference("serving/llama-8b/steps.jsonl.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    let of = |id: &str| {
        let mut words = id.split('-').skip(1);
        (words.next() == Some(load)).then(|| words.next().unwrap().parse::<usize>().unwrap())
    };
    let steps: Vec<(Vec<usize>, BTreeMap<usize, u64>)> = text
        .lines()
        .map(|line| {
            let step: Value = serde_json::from_str(line).unwrap();
            let new = step["new"].as_array().unwrap().iter().filter_map(|id| of(id.as_str().unwrap())).collect();
            let tokens = step["tokens"].as_object().unwrap().iter();
            (new, tokens.filter_map(|(id, tokens)| Some((of(id)?, tokens.as_u64().unwrap()))).collect())
        })
        .filter(|(_, tokens): &(Vec<usize>, BTreeMap<usize, u64>)| !tokens.is_empty())
        .collect();
    let measured = measured(&format!("llama-8b/{load}.json"));
    let sorted: HashMap<usize, usize> = measured.place.iter().enumerate().map(|(at, place)| (*place, at)).collect();
    let mut scheduler = Scheduler::new(rules(58_351), &measured.asked);
    let (mut flight, mut same): (VecDeque<Vec<Part>>, usize) = (VecDeque::new(), 0);
    for (new, tokens) in &steps {
        if flight.len() == 2 {
            flight.drain(..1).for_each(|parts| scheduler.finish(&parts));
        }
        new.iter().for_each(|request| assert!(scheduler.arrive(sorted[request])));
        let parts = scheduler.schedule();
        let made: BTreeMap<usize, u64> = parts.iter().map(|part| (measured.place[part.request], part.tokens)).collect();
        same += usize::from(made == *tokens);
        flight.push_back(parts);
    }
    same as f64 / steps.len() as f64
}

fn steps_have_the_composition_that_the_server_logged() {
    // A prompt of `traced` repeats one of an earlier load, whose keys and values the server still had.
    for load in ["slow", "fast", "traced"] {
        let share = agreement(load);
        println!("{load}: {:.1}% of the steps are the same", share * 100.0);
        assert!(share > 0.99, "{load}: {share}");
    }
}

/// The forecast of a measured run.
fn forecast(model: &str, load: &Measured, engine: Engine, kv_blocks: u64) -> LoadForecast {
    let calibration: DeviceCalibration = serde_json::from_value(json("calibration-h200.json")).unwrap();
    let hardware = Catalogue::built_in().unwrap().find("h200").unwrap().clone();
    let config = ModelConfig::from_json(model, &json(&format!("{model}/config.json")).to_string()).unwrap();
    let network = Model::new(&config);
    let mut workload = WorkloadSettings::of_text(512, 64).resolve(&network, config.dtype()).unwrap();
    (workload.attention, workload.logits) = (AttentionKind::Flash, LogitsKind::Last);
    let prices = StepPrices::new(&network, &workload, engine, &hardware, Some(&calibration)).unwrap().unwrap();
    let mut server = Server { prices, engine, rules: rules(kv_blocks), fleet: Fleet::ONE };
    let due: Vec<f64> = load.sent.iter().map(|sent| (sent - load.sent[0]) * 1e3).collect();
    let same = |_| Load { arrivals: Arrivals::Due(due.clone()), asked: load.asked.clone(), started: Started::Unknown };
    server.forecast(&Objective::default(), DRAWS, same).unwrap()
}

/// A latency of a request.
type Latency<T> = fn(&RequestOutcome<T>) -> T;

/// Its name, what was measured and forecast of a request, and the mean and the 99th percentile that were forecast.
type Row = (&'static str, Latency<f64>, Latency<ForecastRange>, [ForecastRange; 2]);

/// Signed errors of mean and 99th percentile, and how many requests lie in their intervals.
fn compare(name: &str, load: &Measured, found: &LoadForecast) -> [[f64; 3]; 3] {
    let outcome = &found.outcome;
    let parts: [Row; 3] = [
        ("ttft", |one| one.ttft, |one| one.ttft, [outcome.ttft.mean, outcome.ttft.p99]),
        ("tpot", |one| one.tpot, |one| one.tpot, [outcome.tpot.mean, outcome.tpot.p99]),
        ("e2el", |one| one.e2el, |one| one.e2el, [outcome.e2el.mean, outcome.e2el.p99]),
    ];
    parts.map(|(part, of, range, [mean, p99])| {
        let mut values: Vec<f64> = load.requests.iter().map(of).collect();
        let held = values.iter().zip(&found.requests).filter(|(value, request)| {
            let ForecastRange { low, high, .. } = range(request.as_ref().unwrap());
            (low..=high).contains(*value)
        });
        let held = held.count() as f64 / values.len() as f64;
        values.sort_by(f64::total_cmp);
        let place = 0.99 * (values.len() - 1) as f64;
        let (below, above) = (values[place as usize], values[place.ceil() as usize]);
        let real = [values.iter().sum::<f64>() / values.len() as f64, below + (above - below) * place.fract()];
        let errors = [mean.value / real[0] - 1.0, p99.value / real[1] - 1.0];
        println!(
            "{name} {part}: mean {:.2} ms, {:+.1}%; p99 {:.1} ms, {:+.1}%; {:.0}% of the requests in their intervals",
            real[0],
            errors[0] * 100.0,
            real[1],
            errors[1] * 100.0,
            held * 100.0
        );
        [errors[0], errors[1], held]
    })
}

fn latencies_are_those_the_clients_measured() {
    let found = [("slow", 0.15), ("fast", 0.25), ("traced", 0.15)].map(|(load, p99)| {
        let measured = measured(&format!("llama-8b/{load}.json"));
        (load, p99, compare(load, &measured, &forecast("llama-8b", &measured, VLLM, 58_351)))
    });
    for (load, p99, [ttft, tpot, e2el]) in found {
        assert!(ttft[0].abs() < 0.10 && ttft[1].abs() < p99, "{load}: {ttft:?}");
        assert!(tpot[0].abs() < 0.05 && e2el[0].abs() < 0.08, "{load}: {tpot:?} {e2el:?}");
        // The profiler of `traced` slows its host, which no forecast is about.
        if load != "traced" {
            assert!((0.85..=0.95).contains(&ttft[2]), "{load}: {ttft:?}");
            // Host times were read off this server, so that nothing is as uncertain as intervals say of any server.
            assert!(tpot[2] >= 0.95 && e2el[2] >= 0.95, "{load}: {tpot:?} {e2el:?}");
        }
    }
}

fn a_server_that_compiles_meanwhile_is_slower_than_forecast() {
    // The first load after start-up with attention in Triton: nothing answers for half a second. The rest is not far off.
    let measured = measured("llama-1b/plain.json");
    let [ttft, tpot, _] =
        compare("llama-1b", &measured, &forecast("llama-1b", &measured, VLLM.with(Backend::Triton), 257_836));
    assert!(ttft[0] < -0.5 && (-0.35..0.0).contains(&tpot[0]), "{ttft:?} {tpot:?}");
}

testkit::suite! {
    [Need::Reference("serving/llama-8b")] => {
        steps_have_the_composition_that_the_server_logged,
        latencies_are_those_the_clients_measured,
    }
    [Need::Reference("serving/llama-1b")] => {
        a_server_that_compiles_meanwhile_is_slower_than_forecast,
    }
}
