//! Configurations as they are published: what counts where a file leaves something open, and what is refused.

use llm_perf_network::Model;
use llm_perf_network::config::decoder::{AttentionConfig, DecoderConfig, GroupedConfig};
use llm_perf_network::config::{ConfigFile, ModelConfig};
use serde_json::{Value, json};

/// A small decoder, with more fields.
fn small(more: Value) -> Value {
    let mut config = json!({"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 100});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

fn file(config: &Value) -> ConfigFile {
    ConfigFile::from_json("config.json", &config.to_string()).unwrap_or_else(|error| panic!("{error}: {config}"))
}

fn decoder(config: &Value) -> DecoderConfig {
    file(config).config.decoder().unwrap().clone()
}

fn parameters(config: &Value) -> u64 {
    Model::new(&file(config).config).blueprint().parameters_under("")
}

fn refusal(config: &Value) -> String {
    ModelConfig::from_json("config.json", &config.to_string()).unwrap_err().to_string()
}

fn attentions(decoder: &DecoderConfig) -> Vec<GroupedConfig> {
    let grouped = |layer: &llm_perf_network::config::decoder::LayerConfig| match layer.attention {
        AttentionConfig::Grouped(attention) => attention,
        other => panic!("{other:?}"),
    };
    decoder.layers.iter().map(grouped).collect()
}

#[test]
fn a_stated_spelling_beats_the_default_that_a_class_has_under_another() {
    let falcon =
        decoder(&json!({"model_type": "falcon", "hidden_size": 128, "n_layer": 3, "n_head": 8, "vocab_size": 100}));
    assert_eq!((falcon.layers.len(), falcon.heads), (3, 8));
    let bloom = decoder(&json!({"model_type": "bloom", "n_embed": 128, "n_layer": 3, "num_attention_heads": 4}));
    assert_eq!((bloom.width, bloom.layers.len(), bloom.heads), (128, 3, 4));
    let falcon = decoder(&json!({"model_type": "falcon", "n_embed": 128, "num_attention_heads": 4, "vocab_size": 100}));
    assert_eq!(falcon.width, 128);
}

#[test]
fn around_a_decoder_only_a_stated_tie_counts() {
    let tied = |kind: &str, text: &str, around: Value, inside: Value| {
        let mut text = small(json!({"model_type": text}));
        text.as_object_mut().unwrap().extend(inside.as_object().unwrap().clone());
        let mut whole = json!({"model_type": kind, "text_config": text, "vision_config": {"model_type": "pixtral"}});
        whole.as_object_mut().unwrap().extend(around.as_object().unwrap().clone());
        decoder(&whole).tied_embeddings
    };
    // The class of Mistral 3 takes true; its checkpoints, which say nothing, have heads of their own.
    assert!(!tied("mistral3", "mistral", json!({}), json!({})));
    assert!(tied("mistral3", "mistral", json!({"tie_word_embeddings": true}), json!({})));
    // The class of LLaVA takes false, and Gemma's decoders tie.
    assert!(tied("llava", "gemma", json!({}), json!({})));
    assert!(!tied("llava", "gemma", json!({"tie_word_embeddings": false}), json!({})));
    assert!(tied("llava", "qwen2", json!({"tie_word_embeddings": false}), json!({"tie_word_embeddings": true})));
}

#[test]
fn the_head_of_a_class_is_the_published_one_or_refused() {
    let of = |class: &str, kind: &str| {
        small(json!({"architectures": [class], "model_type": kind, "num_labels": 3, "tie_word_embeddings": false}))
    };
    let whole = parameters(&of("InternLM2ForCausalLM", "internlm2"));
    assert_eq!(whole - parameters(&of("InternLM2ForRewardModel", "internlm2")), 64 * 100 - 64);
    for (class, kind) in
        [("Qwen2ForRewardModel", "qwen2"), ("BertForRewardModel", "bert"), ("ModernBertForRewardModel", "modernbert")]
    {
        let unknown = refusal(&of(class, kind));
        assert!(unknown.contains(&format!("`architectures` is [\"{class}\"]")), "{unknown}");
    }
    // A quantisation is no part that would state a width.
    let no_width = json!({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "quantization_config": {"quant_method": "fp8"}});
    assert!(refusal(&no_width).contains("hidden_size"));
    let headless = parameters(&of("Qwen2Model", "qwen2"));
    assert_eq!(parameters(&of("Qwen2ForSequenceClassification", "qwen2")) - headless, 3 * 64);
    assert_eq!(parameters(&of("Qwen2ForTokenClassification", "qwen2")) - headless, 3 * 65);
}

#[test]
fn sizes_that_a_class_decides_are_said() {
    let said = |config: Value, name: &str| file(&config).assumed.get(name).cloned();
    let mixtral = small(json!({"model_type": "mixtral", "num_experts_per_tok": 2}));
    assert_eq!(said(mixtral, "num_local_experts").as_deref(), Some("8"));
    assert_eq!(said(small(json!({"model_type": "mistral"})), "sliding_window").as_deref(), Some("4096"));
    assert_eq!(said(small(json!({"model_type": "mistral", "sliding_window": null})), "sliding_window"), None);
    let opt = json!({"model_type": "opt", "hidden_size": 64, "num_attention_heads": 4, "word_embed_proj_dim": 64});
    assert_eq!(said(opt, "max_position_embeddings").as_deref(), Some("2048"));
    assert_eq!(said(small(json!({"model_type": "mistral"})), "head_dim").as_deref(), Some("16"));
    let mut heads = small(json!({"model_type": "llama"}));
    heads.as_object_mut().unwrap().remove("num_key_value_heads");
    assert_eq!(said(heads, "num_key_value_heads").as_deref(), Some("4"));
}

#[test]
fn parts_that_are_left_out_have_sizes_only_where_those_are_numbers() {
    let whole = |more: Value| {
        let mut config = json!({"model_type": "seeing", "text_config": small(json!({"model_type": "llama"}))});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let left_out = decoder(&config).left_out;
        left_out.into_iter().map(|part| (part.field, part.parameters)).collect::<Vec<_>>()
    };
    let no_parts = json!({"generation_config": {"max_length": 20}, "rope_config": {"base": 10000}, "attn_config": {"alibi": true}});
    assert_eq!(whole(no_parts), []);
    let named = |field: &str, parameters: Option<u64>| vec![(field.to_owned(), parameters)];
    let lists = json!({"vision_config": {"depth": [2, 2], "embed_dim": [96, 192]}});
    assert_eq!(whole(lists), named("vision_config", None));
    assert_eq!(whole(json!({"audio_config": {"d_model": "wide"}})), named("audio_config", None));
    let sized = json!({"vision_config": {"depth": 2, "embed_dim": 8}});
    // Two layers of 4 * 8^2 + 2 * 8 * 32.
    assert_eq!(whole(sized), named("vision_config", Some(1_536)));
}

#[test]
fn chatglm_of_the_first_generation_is_refused() {
    let first = json!({"architectures": ["ChatGLMModel"], "model_type": "chatglm", "hidden_size": 4096, "inner_hidden_size": 16384,
        "layernorm_epsilon": 1e-05, "num_attention_heads": 32, "num_layers": 28, "position_encoding_2d": true,
        "torch_dtype": "float16", "vocab_size": 130528});
    let text = refusal(&first);
    assert!(text.contains("`position_encoding_2d`") && text.contains("ChatGLM-6B"), "{text}");
}

#[test]
fn baichuan_has_rotary_positions_at_one_width_and_none_at_the_other() {
    let of = |width: u64| {
        let config = json!({"architectures": ["BaichuanForCausalLM"], "model_type": "baichuan", "hidden_size": width,
            "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 32, "vocab_size": 100});
        config
    };
    assert!(attentions(&decoder(&of(4096)))[0].rotary.is_some());
    assert!(attentions(&decoder(&of(5120)))[0].rotary.is_none());
    assert!(refusal(&of(2048)).contains("ALiBi"));
}

#[test]
fn local_layers_of_gpt_neo_are_those_that_its_list_repeats() {
    let of = |layers: u64, types: Value| json!({"model_type": "gpt_neo", "hidden_size": 64, "num_heads": 4, "num_layers": layers, "attention_types": types});
    let windows =
        |config: &Value| attentions(&decoder(config)).iter().map(|layer| layer.detail.window).collect::<Vec<_>>();
    assert_eq!(windows(&of(3, json!([[["local"], 1], [["global"], 2]]))), [Some(256), None, None]);
    assert_eq!(windows(&of(24, Value::Null))[..2], [None, Some(256)]);
    for wrong in
        [json!([[["global", "local"], 12]]), json!([[["global"], 1_u64 << 60]]), json!([[["far"], 2]]), json!([])]
    {
        assert!(refusal(&of(2, wrong)).contains("make 2 layers"));
    }
}

#[test]
fn without_a_window_every_layer_of_exaone_has_positions() {
    let of = |window: Value| {
        let config = small(json!({"model_type": "exaone_moe", "sliding_window": window, "num_hidden_layers": 4,
            "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "head_dim": 16}));
        attentions(&decoder(&config)).iter().map(|layer| layer.rotary.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(of(Value::Null), [true; 4]);
    assert_eq!(of(json!(128)), [true, true, true, false]);
}

#[test]
fn layers_of_decilm_are_as_wide_as_their_blocks_say_and_may_lack_a_part() {
    let of = |blocks: Value| {
        json!({"architectures": ["DeciLMForCausalLM"], "model_type": "nemotron-nas", "hidden_size": 384, "vocab_size": 100,
            "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": null, "block_configs": blocks})
    };
    let attention = |group: u64| json!({"n_heads_in_group": group, "no_op": false, "replace_with_linear": false});
    let none = json!({"no_op": true});
    let config = of(json!([
        {"attention": attention(4), "ffn": {"ffn_mult": 1.5, "no_op": false}},
        {"attention": none, "ffn": {"intermediate_size": 128}},
        {"attention": attention(2), "ffn": none},
    ]));
    // 2 * 1.5 * 384 / 3 is 384, in blocks of 256 that is 512. Four heads of 96 with one and with two pairs of key and value.
    let first = 2 * 384 * 384 + 2 * 384 * 96 + 3 * 384 * 512 + 2 * 384;
    let (second, third) = (3 * 384 * 128 + 384, 2 * 384 * 384 + 2 * 384 * 192 + 384);
    assert_eq!(parameters(&config), first + second + third + 2 * 100 * 384 + 384);
    let [one, two] = [json!({"attention": none, "ffn": none}), json!({"attention": attention(3), "ffn": none})];
    assert!(refusal(&of(json!([one, one]))).contains("3 entries"));
    let group = refusal(&of(json!([one, two, one])));
    assert!(group.contains("`block_configs[1].attention.n_heads_in_group` is 3"), "{group}");
    let linear = json!({"attention": {"replace_with_linear": true}, "ffn": none});
    assert!(refusal(&of(json!([linear, one, one]))).contains("`block_configs[0].attention.replace_with_linear`"));
}

#[test]
fn embedders_whose_classes_are_beside_their_weights_have_the_parameters_of_those() {
    // nomic-embed-text-v1.5 and gte-base-en-v1.5, as their files spell them; the second checkpoint has 136,776,192 elements.
    let nomic = json!({"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "activation_function": "swiglu",
        "n_embd": 768, "n_head": 12, "n_inner": 3072, "n_layer": 12, "n_positions": 8192, "layer_norm_epsilon": 1e-12,
        "prenorm": false, "parallel_block": false, "qkv_proj_bias": false, "mlp_fc1_bias": false, "mlp_fc2_bias": false,
        "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "type_vocab_size": 2, "vocab_size": 30528});
    assert_eq!(parameters(&nomic), 136_731_648);
    let gte = json!({"architectures": ["NewModel"], "model_type": "new", "hidden_act": "gelu", "hidden_size": 768,
        "intermediate_size": 3072, "layer_norm_type": "layer_norm", "layer_norm_eps": 1e-12, "num_attention_heads": 12,
        "num_hidden_layers": 12, "pack_qkv": true, "position_embedding_type": "rope", "rope_theta": 500_000,
        "rope_scaling": {"factor": 2.0, "type": "ntk"}, "type_vocab_size": 0, "vocab_size": 30528});
    assert_eq!(parameters(&gte), 136_776_192);
    for (whole, field, other) in [
        (&nomic, "moe_every_n_layers", json!(2)),
        (&nomic, "prenorm", json!(true)),
        (&nomic, "rotary_emb_fraction", json!(0.5)),
        (&gte, "position_embedding_type", json!("absolute")),
        (&gte, "layer_norm_type", json!("rms_norm")),
        (&gte, "pack_qkv", json!(false)),
        (&gte, "head_dim", json!(32)),
    ] {
        let mut whole = whole.clone();
        whole[field] = other;
        assert!(refusal(&whole).contains(field), "{field}");
    }
}

#[test]
fn sizes_of_single_layers_are_read_or_refused() {
    let gemma = |more: Value| {
        let mut config = small(json!({"model_type": "gemma4_text", "head_dim": 16, "hidden_size_per_layer_input": 0,
            "layer_types": ["sliding_attention", "full_attention"], "attention_k_eq_v": true}));
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config
    };
    let older = gemma(json!({"global_head_dim": 32, "num_global_key_value_heads": 1}));
    let newer = gemma(json!({"per_layer_config": {"01": {"head_dim": 32, "num_key_value_heads": 1}}}));
    assert_eq!(attentions(&decoder(&newer)), attentions(&decoder(&older)));
    assert_ne!(attentions(&decoder(&gemma(json!({})))), attentions(&decoder(&older)));
    for other in [json!({"0": {"head_dim": 32}}), json!({"1": {"intermediate_size": 32}})] {
        assert!(refusal(&gemma(json!({"per_layer_config": other}))).contains("per_layer_config"));
    }
    let llama = small(json!({"model_type": "llama", "per_layer_config": {"1": {"intermediate_size": 32}}}));
    assert!(refusal(&llama).contains("`per_layer_config`"));
}

#[test]
fn a_flag_of_an_encoder_that_is_no_flag_is_an_error_with_its_name() {
    let of = |flag: Value| {
        json!({"model_type": "ernie", "architectures": ["ErnieModel"], "hidden_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 32, "task_type_vocab_size": 3,
        "use_task_id": flag})
    };
    assert_eq!(parameters(&of(json!(true))), parameters(&of(json!(false))) + 3 * 64);
    assert!(refusal(&of(json!("yes"))).contains("use_task_id"));
}
