//! Networks, each written once as ordinary forward code over a [`Backend`], and read in several ways.
//!
//! A backend that computes runs the network; a backend whose tensors are shapes meters it. Constructing a network fills
//! a [`Blueprint`] of modules and parameters named as in the published checkpoint, so that a metered tree, a trace and a
//! weights file join on one key. No tensor library and no cost formula is known here.
//!
//! ```
//! use llm_perf_network::Model;
//! use llm_perf_network::config::ModelConfig;
//!
//! let text = r#"{"architectures": ["LlamaForCausalLM"], "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4,
//!     "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 4096, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16"}"#;
//! let model = Model::new(&ModelConfig::from_json("config.json", text)?);
//!
//! let blueprint = model.blueprint();
//! assert_eq!(blueprint.parameters_under(""), 5_048_576);
//! assert_eq!(blueprint.parameters_under("lm_head"), 4096 * 256);
//! let mlp = blueprint.find("model.layers.3.mlp").unwrap();
//! assert_eq!(blueprint.module(mlp).class, "LlamaMLP");
//!
//! // What cannot be read says where and what would do.
//! let error = ModelConfig::from_json("config.json", &text.replace("4096", "-1")).unwrap_err();
//! assert!(error.to_string().contains("`vocab_size` is -1"));
//! # Ok::<(), llm_perf_network::config::ConfigError>(())
//! ```

mod backend;
mod blueprint;
mod class;
pub mod config;
mod error;
mod layer;
mod model;
mod preset;
mod shape;
mod weight_format;

pub use backend::{Backend, KeptSource, Ops, Routing, seen};
pub use blueprint::{Blueprint, Builder, Module, ModuleEntry, Param, ParamEntry, Repetition, Setting};
pub use class::{Class, classes};
pub use error::{NetworkError, ShapeError};
pub use model::{
    CacheKind, CacheLayer, CacheLayout, Images, Model, Positions, Prompt, decoder, deepseek_ocr, encoder,
    encoder_decoder, modern_encoder, shallow_resnet, t5, vision_language,
};
pub use preset::{PRESETS, Preset};
pub use shape::infer;
pub use weight_format::{Scale, Span, WeightFormat};
