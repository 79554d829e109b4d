//! Models that several devices share: what each does, holds and sends.

use llm_perf_meter::{Collective, MeterError, Pass, Prediction, WorkloadSettings, predict};
use network::{Model, Preset};
use types::{AttentionKind, Bytes, DType, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind};

fn model(name: &str) -> Model {
    Model::new(&Preset::find(name).unwrap().config().unwrap())
}

fn settings(batch: u64, tensor: u64, expert: u64, pipeline: u64) -> WorkloadSettings {
    WorkloadSettings {
        profile_id: "test".into(),
        description: String::new(),
        doc_kind: PageKind::Synthetic,
        num_pages: 1,
        batch,
        dtype: Some("bf16".into()),
        attention: AttentionKind::Flash,
        logits: LogitsKind::Last,
        routing: RoutingKind::Balanced,
        base_size: Some(640),
        image_size: Some(640),
        crop_mode: None,
        crop_grid: Some([1, 1]),
        image_pixels: None,
        text_tokens: None,
        seq_len: Some(200),
        max_new_tokens: None,
        decode_steps: Some(10),
        quantisation: Quantisation::default(),
        parallel: Parallel { tensor, expert, pipeline },
    }
}

fn shared(model: &Model, settings: &WorkloadSettings) -> Prediction {
    predict(model, &settings.resolve(model, DType::Bf16).unwrap()).unwrap()
}

fn refusal(name: &str, tensor: u64, expert: u64, pipeline: u64) -> String {
    let model = model(name);
    let settings = if model.takes_tokens() {
        settings(1, tensor, expert, pipeline)
    } else {
        WorkloadSettings { seq_len: Some(0), decode_steps: Some(0), ..settings(1, tensor, expert, pipeline) }
    };
    let error = predict(&model, &settings.resolve(&model, DType::Bf16).unwrap()).unwrap_err();
    assert!(matches!(error, MeterError::UnevenSplit(_)), "{error}");
    error.to_string()
}

/// Times and size of each exchange of one kind.
fn exchanges(pass: &Pass, collective: Collective) -> Vec<(u64, Bytes)> {
    let mut found: Vec<(u64, Bytes)> = Vec::new();
    for message in pass.messages.iter().filter(|message| message.collective == collective) {
        match found.iter_mut().find(|(_, tensor)| *tensor == message.tensor) {
            Some(same) => same.0 += message.count,
            None => found.push((message.count, message.tensor)),
        }
    }
    found
}

#[test]
fn a_single_device_sends_nothing_and_does_what_it_did() {
    let llama = model("llama-3-8b");
    let one = shared(&llama, &settings(2, 1, 1, 1));
    assert!(one.prefill.messages.is_empty() && one.decode.as_ref().unwrap().first.messages.is_empty());
    // 200 tokens of two sequences through 6,979,321,856 weights, and the last of each through the head; attention over
    // the lower triangle: 2 sequences * 32 layers * 32 heads * 20,100 pairs * 128 * two matmuls.
    let matmuls = 2 * 400 * 6_979_321_856u128 + 2 * 2 * 525_336_576;
    let attention = 2 * 2 * 2 * 32 * 32 * 20_100 * 128;
    assert_eq!(one.prefill.total().flops_matrix.get(), matmuls + attention);
    assert_eq!(one.footprint.weights, Bytes::new(2 * 8_030_261_248));
}

#[test]
fn four_devices_do_a_quarter_of_the_products_each() {
    let llama = model("llama-3-8b");
    let (one, four) = (shared(&llama, &settings(2, 1, 1, 1)), shared(&llama, &settings(2, 4, 1, 1)));
    assert_eq!(four.prefill.total().flops_matrix * 4, one.prefill.total().flops_matrix);
    let decode = |prediction: &Prediction| prediction.decode.as_ref().unwrap().total();
    assert_eq!(decode(&four).flops_matrix * 4, decode(&one).flops_matrix);
    // Keys and values of eight heads are cut in four; norms and sums are done by all.
    assert_eq!(decode(&four).bytes.kv_read * 4, decode(&one).bytes.kv_read);
    assert!(decode(&four).flops_vector * 4 > decode(&one).flops_vector);
    assert_eq!(four.footprint.kv() * 4, one.footprint.kv());
}

#[test]
fn a_decoder_layer_needs_two_sums() {
    // Shoeybi et al. 2019, figure 4: two all-reduces in the forward pass of a layer. 32 layers, and the embedding.
    let llama = model("llama-3-8b");
    let four = shared(&llama, &settings(2, 4, 1, 1));
    // Hidden states of 2 * 200 tokens, 4096 wide, two bytes.
    assert_eq!(exchanges(&four.prefill, Collective::AllReduce), [(65, Bytes::new(2 * 200 * 4096 * 2))]);
    // Logits of the last position of each sequence.
    assert_eq!(exchanges(&four.prefill, Collective::AllGather), [(1, Bytes::new(2 * 128_256 * 2))]);
    let step = &four.decode.as_ref().unwrap().first;
    assert_eq!(exchanges(step, Collective::AllReduce), [(65, Bytes::new(2 * 4096 * 2))]);
    // Each sends 2 * 3 / 4 of it.
    let sent: Bytes = step.messages.iter().map(|message| message.sent()).sum();
    assert_eq!(sent, Bytes::new(65 * 2 * 4096 * 2 * 3 / 2 + 2 * 128_256 * 2 * 3 / 4));
}

#[test]
fn more_devices_than_key_value_heads_keep_some_twice() {
    let llama = model("llama-3-8b");
    let (eight, sixteen) = (shared(&llama, &settings(1, 8, 1, 1)), shared(&llama, &settings(1, 16, 1, 1)));
    assert_eq!(sixteen.footprint.kv(), eight.footprint.kv());
    let reads = |prediction: &Prediction| prediction.decode.as_ref().unwrap().total().bytes.kv_read;
    assert_eq!(reads(&sixteen), reads(&eight));
}

#[test]
fn experts_on_eight_devices_share_a_batch_of_eight() {
    let ocr = model("deepseek-ocr");
    let (one, eight) = (shared(&ocr, &settings(8, 1, 1, 1)), shared(&ocr, &settings(8, 1, 8, 1)));
    // Every device has one sequence and an eighth of the experts: all work is divided by eight.
    assert_eq!(eight.prefill.total().flops_matrix * 8, one.prefill.total().flops_matrix);
    // Out and back in each of eleven layers: 200 tokens, six experts each, 1280 wide, two bytes.
    let rows = Bytes::new(200 * 6 * 1280 * 2);
    assert_eq!(exchanges(&eight.prefill, Collective::AllToAll), [(22, rows)]);
    assert!(exchanges(&eight.prefill, Collective::AllReduce).is_empty());
    assert_eq!(eight.footprint.kv() * 8, one.footprint.kv());
}

#[test]
fn experts_within_a_tensor_group_need_no_exchange_of_their_own() {
    let ocr = model("deepseek-ocr");
    for (tensor, expert) in [(2, 1), (2, 2)] {
        let two = shared(&ocr, &settings(2, tensor, expert, 1));
        let sums = exchanges(&two.prefill, Collective::AllReduce);
        assert_eq!(sums, [(25, Bytes::new(2 * 200 * 1280 * 2))], "tensor {tensor}, expert {expert}");
        assert!(exchanges(&two.prefill, Collective::AllToAll).is_empty());
    }
    // Cut or dealt out, the experts' work is half on each.
    let work = |expert| shared(&ocr, &settings(2, 2, expert, 1)).prefill.total().flops_matrix;
    assert_eq!(work(1), work(2));
}

#[test]
fn a_pipeline_hands_hidden_states_on_and_holds_its_layers() {
    let llama = model("llama-3-8b");
    let (one, four) = (shared(&llama, &settings(2, 1, 1, 1)), shared(&llama, &settings(2, 1, 1, 4)));
    assert_eq!(exchanges(&four.prefill, Collective::PointToPoint), [(3, Bytes::new(2 * 200 * 4096 * 2))]);
    assert_eq!(four.prefill.total(), one.prefill.total());
    assert_eq!(four.footprint.kv() * 4, one.footprint.kv());
    // Eight of 32 layers, and the head with its norm.
    assert_eq!(four.footprint.weights, Bytes::new(2 * (8 * 218_112_000 + 525_336_576 + 4096)));
}

#[test]
fn twice_the_devices_hold_half_of_what_is_cut() {
    let llama = model("llama-3-8b");
    let weights = |tensor| shared(&llama, &settings(1, tensor, 1, 1)).footprint.weights.get();
    let norms = 2 * 266_240;
    assert_eq!((weights(2) - norms) * 2, weights(1) - norms);
    assert_eq!((weights(8) - norms) * 2, weights(4) - norms);
}

#[test]
fn sizes_that_do_not_divide_are_refused_with_the_size() {
    assert_eq!(
        refusal("llama-3-8b", 3, 1, 1),
        "workload.parallel.tensor is 3; this model expects a divisor of the 32 attention heads"
    );
    assert_eq!(
        refusal("llama-3-8b", 1, 1, 5),
        "workload.parallel.pipeline is 5; this model expects a divisor of the 32 layers"
    );
    assert_eq!(
        refusal("llama-3-8b", 1, 2, 1),
        "workload.parallel.expert is 2; this model expects 1, because this network has no experts"
    );
    assert_eq!(
        refusal("deepseek-ocr", 1, 7, 1),
        "workload.parallel.expert is 7; this model expects a divisor of the 64 experts"
    );
    assert_eq!(
        refusal("deepseek-ocr", 1, 4, 1),
        "workload.parallel.expert is 4; this model expects a value whose 4 data-parallel groups divide workload.batch=1 evenly"
    );
    assert!(refusal("dummy-shallow-resnet", 2, 1, 1).contains("no decoder layers"));
    assert_eq!(refusal("llama-3-8b", 0, 1, 1), "workload.parallel.tensor is 0; this model expects 1 to 65536");
}

#[test]
fn quantised_weights_are_read_as_they_are_stored() {
    let llama = model("llama-3-8b");
    let with = |quantisation| shared(&llama, &WorkloadSettings { quantisation, ..settings(1, 1, 1, 1) });
    let read = |prediction: &Prediction| prediction.decode.as_ref().unwrap().first.total().bytes.weights.get();
    let plain = with(Quantisation::default());
    let matrices = 6_979_321_856;
    let others = read(&plain) - 2 * matrices;
    let int4 =
        Quantisation { weights: Some(DType::Int4), group: Some(128), zero_points: true, ..Quantisation::default() };
    assert_eq!(read(&with(int4)), others + matrices / 2 + matrices / 128 * 5 / 2);
    // Only what is read changes, not what is computed.
    assert_eq!(with(int4).prefill.total().flops(), plain.prefill.total().flops());
    let types = |prediction: &Prediction| llm_perf_meter::matrix_dtypes(prediction);
    assert_eq!(types(&with(int4)), [DType::Bf16]);
    let fp8 = Quantisation { weights: Some(DType::Fp8), activations: Some(DType::Fp8), ..Quantisation::default() };
    assert_eq!(types(&with(fp8)), [DType::Bf16, DType::Fp8]);
}

#[test]
fn a_cache_in_eight_bits_is_half_as_large_and_read_twice_as_fast() {
    let llama = model("llama-3-8b");
    let with = |kv| {
        let quantisation = Quantisation { kv, ..Quantisation::default() };
        shared(&llama, &WorkloadSettings { quantisation, ..settings(1, 1, 1, 1) })
    };
    let (plain, narrow) = (with(None), with(Some(DType::Fp8)));
    assert_eq!(narrow.footprint.kv() * 2, plain.footprint.kv());
    let bytes = |prediction: &Prediction| prediction.decode.as_ref().unwrap().total().bytes;
    assert_eq!(bytes(&narrow).kv_read * 2, bytes(&plain).kv_read);
    assert_eq!(bytes(&narrow).kv_write * 2, bytes(&plain).kv_write);
    assert_eq!(bytes(&narrow).weights, bytes(&plain).weights);
}
