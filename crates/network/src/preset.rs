//! Models known by name: their published configurations, embedded.

use crate::config::{ConfigError, ModelConfig};

/// A model known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Text of its `config.json`.
    pub config: &'static str,
}

/// Every built-in model, the default first.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "deepseek-ocr",
        about: "DeepSeek-OCR: SAM and CLIP in front of a 3B mixture-of-experts decoder",
        config: include_str!("../presets/deepseek-ocr.json"),
    },
    Preset {
        name: "deepseek-ocr-tiny",
        about: "DeepSeek-OCR at small widths: the same structure, fast on any CPU",
        config: include_str!("../presets/deepseek-ocr-tiny.json"),
    },
    Preset {
        name: "deepseek-ocr-small",
        about: "DeepSeek-OCR at medium widths, for benchmarks",
        config: include_str!("../presets/deepseek-ocr-small.json"),
    },
    Preset {
        name: "decoder-tiny",
        about: "A small Llama-style decoder, fast on any CPU",
        config: include_str!("../presets/decoder-tiny.json"),
    },
    Preset {
        name: "llama-2-7b",
        about: "Llama 2 7B: a dense decoder with multi-head attention",
        config: include_str!("../presets/llama-2-7b.json"),
    },
    Preset {
        name: "llama-3-8b",
        about: "Llama 3 8B: a dense decoder with grouped-query attention",
        config: include_str!("../presets/llama-3-8b.json"),
    },
    Preset {
        name: "llama-3.1-8b",
        about: "Llama 3.1 8B: Llama 3 with rotary scaling to 128k positions",
        config: include_str!("../presets/llama-3.1-8b.json"),
    },
    Preset {
        name: "llama-3.1-70b",
        about: "Llama 3.1 70B: the same at 80 layers",
        config: include_str!("../presets/llama-3.1-70b.json"),
    },
    Preset {
        name: "mistral-7b",
        about: "Mistral 7B v0.1: a sliding window of 4096 positions in every layer",
        config: include_str!("../presets/mistral-7b.json"),
    },
    Preset {
        name: "mixtral-8x7b",
        about: "Mixtral 8x7B: two of eight experts in every layer",
        config: include_str!("../presets/mixtral-8x7b.json"),
    },
    Preset {
        name: "qwen2-7b",
        about: "Qwen2 7B: biases on the QKV projections",
        config: include_str!("../presets/qwen2-7b.json"),
    },
    Preset {
        name: "qwen3-8b",
        about: "Qwen3 8B: RMSNorm on queries and keys per head",
        config: include_str!("../presets/qwen3-8b.json"),
    },
    Preset {
        name: "qwen1.5-moe-a2.7b",
        about: "Qwen1.5-MoE-A2.7B: four of 60 experts and a gated shared expert",
        config: include_str!("../presets/qwen1.5-moe-a2.7b.json"),
    },
    Preset {
        name: "qwen3-30b-a3b",
        about: "Qwen3 30B-A3B: eight of 128 experts in every layer",
        config: include_str!("../presets/qwen3-30b-a3b.json"),
    },
    Preset {
        name: "deepseek-v2-lite",
        about: "DeepSeek-V2-Lite: multi-head latent attention, six of 64 experts and two shared ones",
        config: include_str!("../presets/deepseek-v2-lite.json"),
    },
    Preset {
        name: "deepseek-v3",
        about: "DeepSeek-V3: multi-head latent attention, eight of 256 experts from the best four of eight groups",
        config: include_str!("../presets/deepseek-v3.json"),
    },
    Preset {
        name: "kimi-k2",
        about: "Kimi-K2: DeepSeek-V3's form with eight of 384 experts, stored in fp8",
        config: include_str!("../presets/kimi-k2.json"),
    },
    Preset {
        name: "phi-3.5-mini",
        about: "Phi-3.5-mini: fused QKV and gate-up projections",
        config: include_str!("../presets/phi-3.5-mini.json"),
    },
    Preset {
        name: "gemma-2-9b",
        about: "Gemma 2 9B: pre- and post-norms, softcaps, sliding windows in every other layer",
        config: include_str!("../presets/gemma-2-9b.json"),
    },
    Preset {
        name: "gemma-3-1b",
        about: "Gemma 3 1B: one key-value head, sliding windows in all but every sixth layer",
        config: include_str!("../presets/gemma-3-1b.json"),
    },
    Preset {
        name: "gpt-oss-20b",
        about: "GPT-OSS 20B: attention sinks, sliding windows in every other layer, four of 32 experts",
        config: include_str!("../presets/gpt-oss-20b.json"),
    },
    Preset {
        name: "gpt-oss-120b",
        about: "GPT-OSS 120B: the same at 36 layers and four of 128 experts, which are stored in mxfp4",
        config: include_str!("../presets/gpt-oss-120b.json"),
    },
    Preset {
        name: "llava-1.5-7b",
        about: "LLaVA-1.5 7B: CLIP at 336 pixels and a two-layer projector in front of Llama",
        config: include_str!("../presets/llava-1.5-7b.json"),
    },
    Preset {
        name: "qwen2.5-vl-7b",
        about: "Qwen2.5-VL 7B: images of any size, windowed vision attention, in front of Qwen2.5",
        config: include_str!("../presets/qwen2.5-vl-7b.json"),
    },
    Preset {
        name: "qwen3-vl-8b",
        about: "Qwen3-VL 8B: images of any size, vision features added in the first three layers of Qwen3",
        config: include_str!("../presets/qwen3-vl-8b.json"),
    },
    Preset {
        name: "dummy-shallow-resnet",
        about: "ShallowResNet: a small residual network for trying out profilers",
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
