//! Families of decoders: rows of `families.txt`, read by their switches or by readers of their own.

mod mixture;
mod sizes;

pub(super) mod deci;
pub(super) mod deepseek;
pub(super) mod deepseek_v4;
pub(super) mod described;
pub(super) mod falcon;
pub(super) mod gemma3n;
pub(super) mod gemma4;
pub(super) mod kimi;
pub(super) mod llama4;
pub(crate) mod llava;
pub(super) mod mimo;
pub(super) mod mixer;
pub(super) mod qwen_next;
pub(crate) mod qwen_vl;
pub(super) mod state_space;

use mixture::{mixture, shared};
pub(in crate::config) use sizes::{WIDEST_HEAD, activation_named, rotary};

pub(crate) use super::names::{Family, Names};
