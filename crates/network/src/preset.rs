//! Models known by name: their published configurations, embedded.

use crate::config::{ConfigError, ModelConfig};

/// A model known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// The repository its configuration was published in, and the year.
    pub source: &'static str,
    /// Text of its `config.json`.
    pub config: &'static str,
}

/// Makes a row of every model; the configuration of each is the file of its name.
macro_rules! presets {
    ($($name:literal from $source:literal: $about:literal,)+) => {
        &[$(Preset {
            name: $name,
            about: $about,
            source: $source,
            config: include_str!(concat!("../presets/", $name, ".json")),
        },)+]
    };
}

/// Every built-in model, the default first.
pub const PRESETS: &[Preset] = presets! {
    "deepseek-ocr" from "deepseek-ai/DeepSeek-OCR, 2025":
        "DeepSeek-OCR: SAM and CLIP in front of a 3B mixture-of-experts decoder",
    "deepseek-ocr-tiny" from "made for this project":
        "DeepSeek-OCR at small widths: the same structure, fast on any CPU",
    "deepseek-ocr-small" from "made for this project":
        "DeepSeek-OCR at medium widths, for benchmarks",
    "decoder-tiny" from "made for this project":
        "A small Llama-style decoder, fast on any CPU",
    "flan-t5-xxl" from "google/flan-t5-xxl, 2022":
        "Flan-T5 XXL: a text encoder and decoder, 11B",
    "whisper-large-v3-turbo" from "openai/whisper-large-v3-turbo, 2024":
        "Whisper large-v3 turbo: an encoder for thirty seconds of audio and a shallow decoder",
    "llama-2-7b" from "meta-llama/Llama-2-7b-hf, 2023":
        "Llama 2 7B: a dense decoder with multi-head attention",
    "llama-3-8b" from "meta-llama/Meta-Llama-3-8B, 2024":
        "Llama 3 8B: a dense decoder with grouped-query attention",
    "llama-3.1-8b" from "meta-llama/Llama-3.1-8B, 2024":
        "Llama 3.1 8B: Llama 3 with rotary scaling to 128k positions",
    "llama-3.1-70b" from "meta-llama/Llama-3.1-70B, 2024":
        "Llama 3.1 70B: the same with 80 layers",
    "mistral-7b" from "mistralai/Mistral-7B-v0.1, 2023":
        "Mistral 7B v0.1: a sliding window of 4096 positions in every layer",
    "mixtral-8x7b" from "mistralai/Mixtral-8x7B-v0.1, 2023":
        "Mixtral 8x7B: two of eight experts in every layer",
    "qwen2-7b" from "Qwen/Qwen2-7B, 2024":
        "Qwen2 7B: biases on the QKV projections",
    "qwen3-8b" from "Qwen/Qwen3-8B, 2025":
        "Qwen3 8B: RMSNorm on queries and keys per head",
    "qwen1.5-moe-a2.7b" from "Qwen/Qwen1.5-MoE-A2.7B, 2024":
        "Qwen1.5-MoE-A2.7B: four of 60 experts and a gated shared expert",
    "qwen3-30b-a3b" from "Qwen/Qwen3-30B-A3B, 2025":
        "Qwen3 30B-A3B: eight of 128 experts in every layer",
    "deepseek-v2-lite" from "deepseek-ai/DeepSeek-V2-Lite, 2024":
        "DeepSeek-V2-Lite: multi-head latent attention, six of 64 experts and two shared ones",
    "deepseek-v3" from "deepseek-ai/DeepSeek-V3, 2024":
        "DeepSeek-V3: multi-head latent attention, eight of 256 experts from the best four of eight groups",
    "kimi-k2" from "moonshotai/Kimi-K2-Instruct, 2025":
        "Kimi-K2: the DeepSeek-V3 architecture with eight of 384 experts, stored in fp8",
    "phi-3.5-mini" from "microsoft/Phi-3.5-mini-instruct, 2024":
        "Phi-3.5-mini: fused QKV and gate-up projections",
    "gemma-2-9b" from "google/gemma-2-9b, 2024":
        "Gemma 2 9B: pre- and post-norms, softcaps, sliding windows in every other layer",
    "gemma-3-1b" from "google/gemma-3-1b-pt, 2025":
        "Gemma 3 1B: one key-value head, sliding windows in all but every sixth layer",
    "gpt-oss-20b" from "openai/gpt-oss-20b, 2025":
        "GPT-OSS 20B: attention sinks, sliding windows in every other layer, four of 32 experts",
    "gpt-oss-120b" from "openai/gpt-oss-120b, 2025":
        "GPT-OSS 120B: the same with 36 layers and four of 128 experts, which are stored in mxfp4",
    "llava-1.5-7b" from "llava-hf/llava-1.5-7b-hf, 2023":
        "LLaVA-1.5 7B: CLIP at 336 pixels and a two-layer projector in front of Llama",
    "qwen3-32b" from "Qwen/Qwen3-32B, 2025":
        "Qwen3 32B: the largest dense Qwen3",
    "qwen3-235b-a22b" from "Qwen/Qwen3-235B-A22B, 2025":
        "Qwen3 235B-A22B: eight of 128 experts in 94 layers",
    "qwen3.5-27b" from "Qwen/Qwen3.5-27B, 2026":
        "Qwen3.5 27B: gated delta-net in three of four layers, a vision encoder in front",
    "qwen3.5-35b-a3b" from "Qwen/Qwen3.5-35B-A3B, 2026":
        "Qwen3.5 35B-A3B: the same with eight of 256 experts",
    "deepseek-v4-flash" from "deepseek-ai/DeepSeek-V4-Flash, 2026":
        "DeepSeek-V4-Flash: a window and compressed entries, hyper-connections, experts in fp4",
    "minimax-m2.5" from "MiniMaxAI/MiniMax-M2.5, 2026":
        "MiniMax-M2.5: eight of 256 experts, norms over all heads, stored in fp8",
    "llama-4-scout" from "meta-llama/Llama-4-Scout-17B-16E-Instruct, 2025":
        "Llama 4 Scout, text: chunks of 8192 positions, one of 16 experts plus a shared one",
    "gemma-4-26b-a4b" from "google/gemma-4-26B-A4B, 2026":
        "Gemma 4 26B-A4B, text: eight of 128 experts plus a dense MLP, heads of two widths",
    "nemotron-3-nano" from "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, 2025":
        "Nemotron 3 Nano 30B-A3B: Mamba-2, attention in six of 52 layers, six of 128 experts",
    "qwen2.5-vl-7b" from "Qwen/Qwen2.5-VL-7B-Instruct, 2025":
        "Qwen2.5-VL 7B: images of any size, windowed vision attention, in front of Qwen2.5",
    "qwen3-vl-8b" from "Qwen/Qwen3-VL-8B-Instruct, 2025":
        "Qwen3-VL 8B: images of any size, vision features added in the first three layers of Qwen3",
    "dummy-shallow-resnet" from "made for this project":
        "ShallowResNet: a small residual network for trying out profilers",
};

impl Preset {
    /// The built-in model of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Its sizes.
    pub fn config(&self) -> Result<ModelConfig, ConfigError> {
        ModelConfig::from_json(self.name, self.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    fn parameters(name: &str) -> u64 {
        let config = Preset::find(name).unwrap().config().unwrap();
        Model::new(&config).blueprint().parameters_under("")
    }

    #[test]
    fn every_preset_reads_and_builds() {
        for preset in PRESETS {
            assert!(parameters(preset.name) > 0, "{}", preset.name);
        }
    }

    #[test]
    fn deepseek_ocr_has_the_published_parameters() {
        let config = Preset::find("deepseek-ocr").unwrap().config().unwrap();
        let model = Model::new(&config);
        let under = |path: &str| model.blueprint().parameters_under(path);
        assert_eq!(under(""), 3_336_106_240);
        assert_eq!(under("model.sam_model"), 95_569_152);
        assert_eq!(under("model.vision_model"), 303_177_728);
        assert_eq!(under("model.projector"), 2_622_720);
        assert_eq!(under("model.layers.0"), 32_852_480);
        assert_eq!(under("model.layers.1"), 233_720_320);
        assert_eq!(under("model.layers.11"), 233_720_320);
        assert_eq!(under("model.embed_tokens"), 165_478_400);
        assert_eq!(under("lm_head"), 165_478_400);
    }
}
