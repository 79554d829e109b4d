//! Several servers that share a load: nothing is lost on the way, and what one does, the others do not.

use std::sync::LazyLock;

use llm_perf_forecast::serving::{
    Apart, Arrivals, Asked, Draw, Engine, Fleet, Load, MeasuredStep, Part, Router, Rules, SGLANG, Simulated, Started,
    StepPrices, VLLM, simulate,
};
use meter::WorkloadSettings;
use meter::hardware::Catalogue;
use network::Model;
use network::config::ModelConfig;
use proptest::prelude::*;
use types::{AttentionKind, Hardware, LogitsKind, StepKind, Workload};

const CONFIG: &str = r#"{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":1024,"intermediate_size":2048,
    "num_hidden_layers":4,"num_attention_heads":8,"num_key_value_heads":2,"vocab_size":32000,"rms_norm_eps":1e-5,
    "torch_dtype":"bfloat16","tie_word_embeddings":false,"max_position_embeddings":8192,"hidden_act":"silu"}"#;

static SMALL: LazyLock<(Model, Workload, Hardware)> = LazyLock::new(|| {
    let config = ModelConfig::from_json("small", CONFIG).unwrap();
    let network = Model::new(&config);
    let mut workload = WorkloadSettings::of_text(512, 64).resolve(&network, config.dtype()).unwrap();
    (workload.attention, workload.logits) = (AttentionKind::Flash, LogitsKind::Last);
    (network, workload, Catalogue::built_in().unwrap().find("h200").unwrap().clone())
});

fn prices(engine: Engine) -> StepPrices<'static> {
    let (network, workload, hardware) = &*SMALL;
    StepPrices::new(network, workload, engine, hardware, None).unwrap().unwrap()
}

fn rules(engine: Engine, kv_blocks: u64) -> Rules {
    Rules { mixing: engine.mixing, max_num_seqs: 8, max_num_batched_tokens: 256, kv_blocks, block_size: 16, piece: 0 }
}

fn serve(engine: Engine, kv_blocks: u64, fleet: &Fleet, load: &Load) -> Simulated {
    simulate(&mut prices(engine), &engine, rules(engine, kv_blocks), fleet, load, Draw::default()).unwrap()
}

fn load(arrivals: Arrivals, lengths: &[[u64; 2]]) -> Load {
    let asked =
        lengths.iter().map(|[input, output]| Asked { input: *input, output: *output, pieces: vec![] }).collect();
    Load { arrivals, asked, started: Started::Long }
}

fn due(count: usize, apart: f64) -> Arrivals {
    Arrivals::Due((0..count).map(|place| place as f64 * apart).collect())
}

fn apart(prefill: usize, decode: usize, token: f64) -> Fleet {
    Fleet { servers: prefill, router: Router::RoundRobin, apart: Some(Apart { servers: decode, token }) }
}

fn fleets() -> impl Strategy<Value = Fleet> {
    let router = prop_oneof![Just(Router::RoundRobin), Just(Router::LeastLoaded)];
    let decoding = prop::option::of((1usize..4, 0.0..50.0f64));
    (1usize..4, router, decoding).prop_map(|(servers, router, decoding)| Fleet {
        servers,
        router,
        apart: decoding.map(|(servers, token)| Apart { servers, token }),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn tokens_are_conserved_blocks_suffice_and_nobody_starves_on_any_fleet(
        lengths in prop::collection::vec((1u64..400, 1u64..40).prop_map(|(input, output)| [input, output]), 1..40),
        pause in 0.0..20_000.0f64,
        slots in prop::option::of(1usize..20),
        fleet in fleets(),
        engine in prop_oneof![Just(VLLM), Just(SGLANG)],
        spare in 0u64..100,
    ) {
        let arrivals = slots.map_or_else(|| due(lengths.len(), pause), Arrivals::Slots);
        let found = serve(engine, 28 + spare, &fleet, &load(arrivals, &lengths));
        prop_assert!(found.kv_peak <= 1.0 && found.preemptions < 10_000);
        for (answer, [_, output]) in found.answers.iter().zip(&lengths) {
            let answer = answer.expect("it fits");
            prop_assert_eq!(answer.tokens, *output);
            prop_assert!(0.0 <= answer.scheduled && answer.scheduled < answer.first && answer.first <= answer.last);
        }
        prop_assert_eq!(found.gaps.len() as u64, lengths.iter().map(|[_, output]| output - 1).sum::<u64>());
        prop_assert!(found.gaps.iter().all(|gap| *gap > 0.0));
        // The last token of an output is never processed; what a preemption drops is processed again.
        let needed: u64 = lengths.iter().map(|[input, output]| input + output - 1).sum();
        prop_assert!(found.tokens == needed || found.preemptions > 0 && found.tokens > needed, "{} of {needed}", found.tokens);
    }

    #[test]
    fn more_load_never_lowers_queueing_time_on_servers_that_take_turns(
        lengths in prop::collection::vec((16u64..200, 1u64..30).prop_map(|(input, output)| [input, output]), 4..30),
        copies in 2usize..4,
        servers in 1usize..4,
        engine in prop_oneof![Just(VLLM), Just(SGLANG)],
    ) {
        // Every request comes with others just ahead of it: those before it on its server are among them, and as many more.
        let fleet = Fleet { servers, ..Fleet::ONE };
        let many: Vec<[u64; 2]> = lengths.iter().flat_map(|one| std::iter::repeat_n(*one, copies)).collect();
        let wait = |lengths: &[[u64; 2]], apart: usize| -> f64 {
            let found = serve(engine, 10_000, &fleet, &load(due(lengths.len(), 0.0), lengths));
            found.answers.iter().skip(apart - 1).step_by(apart).flatten().map(|answer| answer.scheduled).sum()
        };
        let (before, after) = (wait(&lengths, 1), wait(&many, copies));
        prop_assert!(after >= before, "{before} and {after}");
    }

    #[test]
    fn more_servers_never_make_requests_wait_longer_in_a_queue_of_their_own(
        lengths in prop::collection::vec((64u64..200, 1u64..30).prop_map(|(input, output)| [input, output]), 8..40),
    ) {
        // All at once: the requests of a server are a part of those that one server would have.
        let waits = |servers: usize| -> f64 {
            let fleet = Fleet { servers, ..Fleet::ONE };
            serve(VLLM, 10_000, &fleet, &load(due(lengths.len(), 0.0), &lengths)).answers.iter().flatten().map(|one| one.scheduled).sum()
        };
        prop_assert!(waits(2) <= waits(1) + 1.0);
    }
}

#[test]
fn servers_that_take_turns_are_servers_with_every_other_request() {
    let lengths: Vec<[u64; 2]> = (0..40).map(|at| [50 + 13 * at % 300, 1 + 7 * at % 30]).collect();
    let together = serve(VLLM, 10_000, &Fleet { servers: 2, ..Fleet::ONE }, &load(due(40, 900.0), &lengths));
    for server in 0..2 {
        let own: Vec<[u64; 2]> = lengths.iter().copied().skip(server).step_by(2).collect();
        let times = (0..20).map(|place| (2 * place + server) as f64 * 900.0).collect();
        let alone = serve(VLLM, 10_000, &Fleet::ONE, &load(Arrivals::Due(times), &own));
        let shared: Vec<_> = together.answers.iter().copied().skip(server).step_by(2).collect();
        assert_eq!(alone.answers, shared);
    }
}

#[test]
fn a_router_that_knows_the_load_spares_requests_behind_a_long_one() {
    // Every other request is long: turns give all of them to one server.
    let lengths: Vec<[u64; 2]> = (0..60).map(|at| if at % 2 == 0 { [250, 200] } else { [20, 2] }).collect();
    let wait = |router: Router| -> f64 {
        let fleet = Fleet { servers: 2, router, apart: None };
        let found = serve(VLLM, 10_000, &fleet, &load(due(60, 4_000.0), &lengths));
        found.answers.iter().flatten().map(|answer| answer.scheduled).sum()
    };
    assert!(wait(Router::LeastLoaded) < 0.8 * wait(Router::RoundRobin));
}

#[test]
fn a_router_does_not_know_an_answer_before_it_is_made() {
    // Of two servers, the second has a request of one token. Until its client has the answer, a third request meets as many on either
    // server and goes to the first, where it slows down the request that decodes.
    let fleet = Fleet { servers: 2, router: Router::LeastLoaded, apart: None };
    let lengths = [[20, 400], [200, 1], [200, 1]];
    let answers = |third: f64| -> Vec<_> {
        let load = load(Arrivals::Due(vec![0.0, 0.0, third]), &lengths);
        serve(VLLM, 10_000, &fleet, &load).answers.into_iter().flatten().collect()
    };
    let apart = answers(1e9);
    let slows_the_first = |third: f64| answers(third)[0].last > apart[0].last;
    assert!(slows_the_first(apart[1].last - 1.0) && !slows_the_first(apart[1].last + 1.0));
}

#[test]
fn decoding_apart_is_not_interrupted_by_prompts_and_waits_for_the_link() {
    let lengths = vec![[4_000, 30]; 40];
    let load = load(due(40, 60_000.0), &lengths);
    let mean = |found: &Simulated| found.gaps.iter().sum::<f32>() / found.gaps.len() as f32;
    let (together, split) = (serve(VLLM, 10_000, &Fleet::ONE, &load), serve(VLLM, 10_000, &apart(1, 1, 1.0), &load));
    assert!(mean(&split) < 0.9 * mean(&together), "{} and {}", mean(&split), mean(&together));
    // 4,000 tokens of 10 us each are 40 ms, of 1 us 4 ms: the first token comes so much later, and nothing else changes before it.
    let slow = serve(VLLM, 10_000, &apart(1, 1, 10.0), &load);
    for (fast, slow) in split.answers.iter().flatten().zip(slow.answers.iter().flatten()) {
        assert!((slow.first - fast.first - 36_000.0).abs() < 1e-6, "{} and {}", fast.first, slow.first);
        assert_eq!(fast.scheduled, slow.scheduled);
    }
    // A request that fits no server is refused before its prompt is processed.
    let refused = serve(VLLM, 26, &apart(1, 1, 1.0), &load);
    assert!(refused.answers.iter().all(Option::is_none) && refused.tokens == 0);
}

#[test]
fn measured_steps_correct_the_kind_they_are_of() {
    let mut prices = prices(VLLM);
    let part = |tokens: u64, context: u64| Part { request: 0, tokens, context, emits: true };
    let kinds = [vec![part(1, 300); 4], vec![part(200, 0), part(1, 300)]];
    let device = |prices: &mut StepPrices<'_>, parts: &[Part]| {
        let time = prices.time(parts).unwrap();
        time.dense + time.attention
    };
    let before = kinds.clone().map(|parts| device(&mut prices, &parts));
    let measured = |parts: &Vec<Part>, device: f64| vec![MeasuredStep { parts: parts.clone(), device }; 9];
    // Decode steps take 1.25 times as long as forecast; of steps with prompts too few were measured.
    let mut steps = measured(&kinds[0], 1.25 * before[0]);
    steps.extend(measured(&kinds[1], 9.0 * before[1]).into_iter().take(3));
    let residuals = prices.residuals(&steps).unwrap();
    let known: Vec<_> = residuals.known().iter().map(|one| (one.kind, one.steps)).collect();
    assert_eq!(known, [(StepKind::Decode, 9)]);
    prices.correct(residuals);
    let after = kinds.map(|parts| device(&mut prices, &parts));
    assert!((after[0] / before[0] - 1.25).abs() < 1e-9 && after[1] == before[1], "{before:?} and {after:?}");
}
