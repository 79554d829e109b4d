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

/// Every built-in model, the default first.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "deepseek-ocr",
        about: "DeepSeek-OCR: SAM and CLIP in front of a 3B mixture-of-experts decoder",
        source: "deepseek-ai/DeepSeek-OCR, 2025",
        config: include_str!("../presets/deepseek-ocr.json"),
    },
    Preset {
        name: "deepseek-ocr-tiny",
        about: "DeepSeek-OCR at small widths: the same structure, fast on any CPU",
        source: "made for this project",
        config: include_str!("../presets/deepseek-ocr-tiny.json"),
    },
    Preset {
        name: "deepseek-ocr-small",
        about: "DeepSeek-OCR at medium widths, for benchmarks",
        source: "made for this project",
        config: include_str!("../presets/deepseek-ocr-small.json"),
    },
    Preset {
        name: "decoder-tiny",
        about: "A small Llama-style decoder, fast on any CPU",
        source: "made for this project",
        config: include_str!("../presets/decoder-tiny.json"),
    },
    Preset {
        name: "flan-t5-xxl",
        about: "Flan-T5 XXL: a text encoder and decoder, 11B",
        source: "google/flan-t5-xxl, 2022",
        config: include_str!("../presets/flan-t5-xxl.json"),
    },
    Preset {
        name: "whisper-large-v3-turbo",
        about: "Whisper large-v3 turbo: an encoder for thirty seconds of audio and a shallow decoder",
        source: "openai/whisper-large-v3-turbo, 2024",
        config: include_str!("../presets/whisper-large-v3-turbo.json"),
    },
    Preset {
        name: "llama-2-7b",
        about: "Llama 2 7B: a dense decoder with multi-head attention",
        source: "meta-llama/Llama-2-7b-hf, 2023",
        config: include_str!("../presets/llama-2-7b.json"),
    },
    Preset {
        name: "llama-3-8b",
        about: "Llama 3 8B: a dense decoder with grouped-query attention",
        source: "meta-llama/Meta-Llama-3-8B, 2024",
        config: include_str!("../presets/llama-3-8b.json"),
    },
    Preset {
        name: "llama-3.1-8b",
        about: "Llama 3.1 8B: Llama 3 with rotary scaling to 128k positions",
        source: "meta-llama/Llama-3.1-8B, 2024",
        config: include_str!("../presets/llama-3.1-8b.json"),
    },
    Preset {
        name: "llama-3.1-70b",
        about: "Llama 3.1 70B: the same with 80 layers",
        source: "meta-llama/Llama-3.1-70B, 2024",
        config: include_str!("../presets/llama-3.1-70b.json"),
    },
    Preset {
        name: "mistral-7b",
        about: "Mistral 7B v0.1: a sliding window of 4096 positions in every layer",
        source: "mistralai/Mistral-7B-v0.1, 2023",
        config: include_str!("../presets/mistral-7b.json"),
    },
    Preset {
        name: "mixtral-8x7b",
        about: "Mixtral 8x7B: two of eight experts in every layer",
        source: "mistralai/Mixtral-8x7B-v0.1, 2023",
        config: include_str!("../presets/mixtral-8x7b.json"),
    },
    Preset {
        name: "qwen2-7b",
        about: "Qwen2 7B: biases on the QKV projections",
        source: "Qwen/Qwen2-7B, 2024",
        config: include_str!("../presets/qwen2-7b.json"),
    },
    Preset {
        name: "qwen3-8b",
        about: "Qwen3 8B: RMSNorm on queries and keys per head",
        source: "Qwen/Qwen3-8B, 2025",
        config: include_str!("../presets/qwen3-8b.json"),
    },
    Preset {
        name: "qwen1.5-moe-a2.7b",
        about: "Qwen1.5-MoE-A2.7B: four of 60 experts and a gated shared expert",
        source: "Qwen/Qwen1.5-MoE-A2.7B, 2024",
        config: include_str!("../presets/qwen1.5-moe-a2.7b.json"),
    },
    Preset {
        name: "qwen3-30b-a3b",
        about: "Qwen3 30B-A3B: eight of 128 experts in every layer",
        source: "Qwen/Qwen3-30B-A3B, 2025",
        config: include_str!("../presets/qwen3-30b-a3b.json"),
    },
    Preset {
        name: "deepseek-v2-lite",
        about: "DeepSeek-V2-Lite: multi-head latent attention, six of 64 experts and two shared ones",
        source: "deepseek-ai/DeepSeek-V2-Lite, 2024",
        config: include_str!("../presets/deepseek-v2-lite.json"),
    },
    Preset {
        name: "deepseek-v3",
        about: "DeepSeek-V3: multi-head latent attention, eight of 256 experts from the best four of eight groups",
        source: "deepseek-ai/DeepSeek-V3, 2024",
        config: include_str!("../presets/deepseek-v3.json"),
    },
    Preset {
        name: "kimi-k2",
        about: "Kimi-K2: the DeepSeek-V3 architecture with eight of 384 experts, stored in fp8",
        source: "moonshotai/Kimi-K2-Instruct, 2025",
        config: include_str!("../presets/kimi-k2.json"),
    },
    Preset {
        name: "phi-3.5-mini",
        about: "Phi-3.5-mini: fused QKV and gate-up projections",
        source: "microsoft/Phi-3.5-mini-instruct, 2024",
        config: include_str!("../presets/phi-3.5-mini.json"),
    },
    Preset {
        name: "gemma-2-9b",
        about: "Gemma 2 9B: pre- and post-norms, softcaps, sliding windows in every other layer",
        source: "google/gemma-2-9b, 2024",
        config: include_str!("../presets/gemma-2-9b.json"),
    },
    Preset {
        name: "gemma-3-1b",
        about: "Gemma 3 1B: one key-value head, sliding windows in all but every sixth layer",
        source: "google/gemma-3-1b-pt, 2025",
        config: include_str!("../presets/gemma-3-1b.json"),
    },
    Preset {
        name: "gpt-oss-20b",
        about: "GPT-OSS 20B: attention sinks, sliding windows in every other layer, four of 32 experts",
        source: "openai/gpt-oss-20b, 2025",
        config: include_str!("../presets/gpt-oss-20b.json"),
    },
    Preset {
        name: "gpt-oss-120b",
        about: "GPT-OSS 120B: the same with 36 layers and four of 128 experts, which are stored in mxfp4",
        source: "openai/gpt-oss-120b, 2025",
        config: include_str!("../presets/gpt-oss-120b.json"),
    },
    Preset {
        name: "llava-1.5-7b",
        about: "LLaVA-1.5 7B: CLIP at 336 pixels and a two-layer projector in front of Llama",
        source: "llava-hf/llava-1.5-7b-hf, 2023",
        config: include_str!("../presets/llava-1.5-7b.json"),
    },
    Preset {
        name: "qwen3-32b",
        about: "Qwen3 32B: the largest dense Qwen3",
        source: "Qwen/Qwen3-32B, 2025",
        config: include_str!("../presets/qwen3-32b.json"),
    },
    Preset {
        name: "qwen3-235b-a22b",
        about: "Qwen3 235B-A22B: eight of 128 experts in 94 layers",
        source: "Qwen/Qwen3-235B-A22B, 2025",
        config: include_str!("../presets/qwen3-235b-a22b.json"),
    },
    Preset {
        name: "qwen3.5-27b",
        about: "Qwen3.5 27B: gated delta-net in three of four layers, a vision encoder in front",
        source: "Qwen/Qwen3.5-27B, 2026",
        config: include_str!("../presets/qwen3.5-27b.json"),
    },
    Preset {
        name: "qwen3.5-35b-a3b",
        about: "Qwen3.5 35B-A3B: the same with eight of 256 experts",
        source: "Qwen/Qwen3.5-35B-A3B, 2026",
        config: include_str!("../presets/qwen3.5-35b-a3b.json"),
    },
    Preset {
        name: "deepseek-v4-flash",
        about: "DeepSeek-V4-Flash: a window and compressed entries, hyper-connections, experts in fp4",
        source: "deepseek-ai/DeepSeek-V4-Flash, 2026",
        config: include_str!("../presets/deepseek-v4-flash.json"),
    },
    Preset {
        name: "minimax-m2.5",
        about: "MiniMax-M2.5: eight of 256 experts, norms over all heads, stored in fp8",
        source: "MiniMaxAI/MiniMax-M2.5, 2026",
        config: include_str!("../presets/minimax-m2.5.json"),
    },
    Preset {
        name: "llama-4-scout",
        about: "Llama 4 Scout, text: chunks of 8192 positions, one of 16 experts plus a shared one",
        source: "meta-llama/Llama-4-Scout-17B-16E-Instruct, 2025",
        config: include_str!("../presets/llama-4-scout.json"),
    },
    Preset {
        name: "gemma-4-26b-a4b",
        about: "Gemma 4 26B-A4B, text: eight of 128 experts plus a dense MLP, heads of two widths",
        source: "google/gemma-4-26B-A4B, 2026",
        config: include_str!("../presets/gemma-4-26b-a4b.json"),
    },
    Preset {
        name: "nemotron-3-nano",
        about: "Nemotron 3 Nano 30B-A3B: Mamba-2, attention in six of 52 layers, six of 128 experts",
        source: "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, 2025",
        config: include_str!("../presets/nemotron-3-nano.json"),
    },
    Preset {
        name: "qwen2.5-vl-7b",
        about: "Qwen2.5-VL 7B: images of any size, windowed vision attention, in front of Qwen2.5",
        source: "Qwen/Qwen2.5-VL-7B-Instruct, 2025",
        config: include_str!("../presets/qwen2.5-vl-7b.json"),
    },
    Preset {
        name: "qwen3-vl-8b",
        about: "Qwen3-VL 8B: images of any size, vision features added in the first three layers of Qwen3",
        source: "Qwen/Qwen3-VL-8B-Instruct, 2025",
        config: include_str!("../presets/qwen3-vl-8b.json"),
    },
    Preset {
        name: "dummy-shallow-resnet",
        about: "ShallowResNet: a small residual network for trying out profilers",
        source: "made for this project",
        config: include_str!("../presets/dummy-shallow-resnet.json"),
    },
];

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
