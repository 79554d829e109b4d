//! What the cache of each family takes, and how many sequences fit.

use llm_perf_meter::hardware::Catalogue;
use llm_perf_meter::{Footprint, WorkloadSettings, predict};
use network::{Model, Preset};
use types::{AttentionKind, Bytes, DType, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind};

fn footprint(name: &str, prompt: u64, steps: u64, quantisation: Quantisation) -> Footprint {
    let model = Model::new(&Preset::find(name).unwrap().config().unwrap());
    let settings = WorkloadSettings {
        profile_id: "test".into(),
        description: String::new(),
        doc_kind: PageKind::Synthetic,
        num_pages: 0,
        batch: 2,
        dtype: Some("bf16".into()),
        attention: AttentionKind::Flash,
        logits: LogitsKind::Last,
        routing: RoutingKind::Balanced,
        base_size: None,
        image_size: None,
        crop_mode: None,
        crop_grid: None,
        image_pixels: None,
        text_tokens: Some(prompt),
        seq_len: None,
        max_new_tokens: None,
        decode_steps: Some(steps),
        quantisation,
        parallel: Parallel::default(),
    };
    predict(&model, &settings.resolve(&model, DType::Bf16).unwrap()).unwrap().footprint
}

fn per_token(name: &str) -> u64 {
    footprint(name, 10, 1, Quantisation::default()).kv_per_token.unwrap().get()
}

#[test]
fn a_token_takes_what_is_published() {
    // DeepSeek-AI 2025, Insights into DeepSeek-V3, table 1: 70.272 KB, a latent vector of 512 and a key of 64 in 61 layers.
    assert_eq!(per_token("deepseek-v3"), 70_272);
    // Eight key-value heads of 128 in 32 layers, keys and values of two bytes: the 128 KiB everyone quotes.
    assert_eq!(per_token("llama-3-8b"), 128 << 10);
    // The 405B has 126 layers, 516.096 KB; the 70B of the same form 80, so 80 / 126 of that.
    assert_eq!(per_token("llama-3.1-70b"), 516_096 / 126 * 80);
}

#[test]
fn a_window_bounds_what_is_kept() {
    // Gemma 2 9B: 42 layers of eight key-value heads of 256, every other one sees 4,096 positions.
    let layer = 2 * 8 * 256 * 2;
    let short = footprint("gemma-2-9b", 4_000, 0, Quantisation::default());
    assert_eq!(short.kv_per_sequence, Some(Bytes::new(42 * layer * 4_000)));
    let long = footprint("gemma-2-9b", 10_000, 1_000, Quantisation::default());
    assert_eq!(long.kv_per_sequence, Some(Bytes::new(21 * layer * 11_000 + 21 * layer * 4_096)));
    assert_eq!(long.kv(), Bytes::new(2 * (21 * layer * 11_000 + 21 * layer * 4_096)));
}

#[test]
fn twice_the_length_is_half_the_sequences() {
    let h200 = Catalogue::built_in().unwrap().find("h200").unwrap().memory_bytes;
    let with = |prompt, steps| footprint("llama-3-8b", prompt, steps, Quantisation::default());
    let (one, two) = (with(1_000, 24), with(1_000, 1_048));
    // 1,024 positions of 128 KiB beside 16 GB of weights in 150.75 GB.
    let left = h200.get() - one.weights.get() - one.activations.get();
    assert_eq!(one.sequences(h200), Some(left / (128 << 20)));
    assert!(one.sequences(h200).unwrap().abs_diff(2 * two.sequences(h200).unwrap()) <= 1);
}

#[test]
fn a_narrow_cache_fits_twice_as_many() {
    let h200 = Catalogue::built_in().unwrap().find("h200").unwrap().memory_bytes;
    let narrow = Quantisation { kv: Some(DType::Fp8), ..Quantisation::default() };
    let (plain, narrow) =
        (footprint("qwen3-8b", 900, 100, Quantisation::default()), footprint("qwen3-8b", 900, 100, narrow));
    assert!(narrow.sequences(h200).unwrap().abs_diff(2 * plain.sequences(h200).unwrap()) <= 1);
}

#[test]
fn an_encoder_and_a_decoder_keep_the_prompt_once_and_what_is_written() {
    // Whisper large-v3 turbo: 4 decoder layers, keys and values of 1,280 in two bytes, of 1,500 positions of sound and of the
    // token that the decoder starts from and those of 9 steps.
    let whisper = footprint("whisper-large-v3-turbo", 1_500, 9, Quantisation::default());
    let position = 4 * 2 * 1_280 * 2;
    assert_eq!(whisper.kv_per_token, Some(Bytes::new(position)));
    assert_eq!(whisper.kv_per_sequence, Some(Bytes::new(position * (1_500 + 1 + 9))));
}

#[test]
fn sound_of_another_length_more_tokens_than_positions_and_several_devices_are_refused() {
    let model = Model::new(&Preset::find("whisper-large-v3-turbo").unwrap().config().unwrap());
    let refused =
        |prompt, new| WorkloadSettings::of_text(prompt, new).resolve(&model, DType::Fp16).unwrap_err().to_string();
    assert_eq!(refused(1_000, 10), "workload.seq_len is 1000; this model expects 1500");
    assert_eq!(refused(1_500, 449), "workload.max_new_tokens is 449; this model expects 1 to 448");
    let two = Parallel { tensor: 2, ..Parallel::default() };
    let shared = WorkloadSettings { parallel: two, ..WorkloadSettings::of_text(1_500, 10) };
    let shared = predict(&model, &shared.resolve(&model, DType::Fp16).unwrap()).unwrap_err().to_string();
    assert!(shared.contains("workload.parallel.tensor is 2; this model expects 1, because a model with"), "{shared}");
}
