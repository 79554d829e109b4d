//! Networks, each written once as ordinary forward code over a [`Backend`], and read in several ways.
//!
//! A backend that computes runs the network; a backend whose tensors are shapes meters it. Constructing a network fills
//! a [`Blueprint`] of modules and parameters named as in the published checkpoint, so that a metered tree, a trace and a
//! weights file join on one key. No tensor library and no cost formula is known here.

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

pub use backend::{Backend, Ops, Routing, seen};
pub use blueprint::{Blueprint, Builder, Module, ModuleEntry, Param, ParamEntry, Repetition, Setting};
pub use class::{Class, classes};
pub use error::{NetworkError, ShapeError};
pub use model::{
    CacheKind, CacheLayer, CacheLayout, Images, Model, Prompt, decoder, deepseek_ocr, encoder, modern_encoder,
    shallow_resnet, vision_language,
};
pub use preset::{PRESETS, Preset};
pub use shape::infer;
pub use weight_format::{Scale, Span, WeightFormat};
