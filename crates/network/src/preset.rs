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
        about: "DeepSeek-OCR at small widths: the same structure, quick on any processor",
        config: include_str!("../presets/deepseek-ocr-tiny.json"),
    },
    Preset {
        name: "deepseek-ocr-small",
        about: "DeepSeek-OCR at middling widths, for benchmarks",
        config: include_str!("../presets/deepseek-ocr-small.json"),
    },
    Preset {
        name: "decoder-tiny",
        about: "A plain decoder in the form of Llama at small widths, quick on any processor",
        config: include_str!("../presets/decoder-tiny.json"),
    },
    Preset {
        name: "llama-2-7b",
        about: "Llama 2 7B: a plain decoder, as many key-value heads as heads",
        config: include_str!("../presets/llama-2-7b.json"),
    },
    Preset {
        name: "llama-3-8b",
        about: "Llama 3 8B: a plain decoder with grouped key-value heads",
        config: include_str!("../presets/llama-3-8b.json"),
    },
    Preset {
        name: "llama-3.1-8b",
        about: "Llama 3.1 8B: Llama 3 with angles stretched to 128k positions",
        config: include_str!("../presets/llama-3.1-8b.json"),
    },
    Preset {
        name: "llama-3.1-70b",
        about: "Llama 3.1 70B: the same at 80 layers",
        config: include_str!("../presets/llama-3.1-70b.json"),
    },
    Preset {
        name: "mistral-7b",
        about: "Mistral 7B v0.1: a window of 4096 positions on every layer",
        config: include_str!("../presets/mistral-7b.json"),
    },
    Preset {
        name: "mixtral-8x7b",
        about: "Mixtral 8x7B: two of eight experts in every layer",
        config: include_str!("../presets/mixtral-8x7b.json"),
    },
    Preset {
        name: "qwen2-7b",
        about: "Qwen2 7B: biases on queries, keys and values",
        config: include_str!("../presets/qwen2-7b.json"),
    },
    Preset {
        name: "qwen3-8b",
        about: "Qwen3 8B: queries and keys normed head by head",
        config: include_str!("../presets/qwen3-8b.json"),
    },
    Preset {
        name: "qwen1.5-moe-a2.7b",
        about: "Qwen1.5-MoE-A2.7B: four of sixty experts beside a shared one with a gate",
        config: include_str!("../presets/qwen1.5-moe-a2.7b.json"),
    },
    Preset {
        name: "qwen3-30b-a3b",
        about: "Qwen3 30B-A3B: eight of 128 experts in every layer",
        config: include_str!("../presets/qwen3-30b-a3b.json"),
    },
    Preset {
        name: "deepseek-v2-lite",
        about: "DeepSeek-V2-Lite: latent attention, six of 64 experts beside two shared ones",
        config: include_str!("../presets/deepseek-v2-lite.json"),
    },
    Preset {
        name: "deepseek-v3",
        about: "DeepSeek-V3: latent attention, eight of 256 experts from the best four of eight groups",
        config: include_str!("../presets/deepseek-v3.json"),
    },
    Preset {
        name: "phi-3.5-mini",
        about: "Phi-3.5-mini: one projection for queries, keys and values, one for gate and up",
        config: include_str!("../presets/phi-3.5-mini.json"),
    },
    Preset {
        name: "gemma-2-9b",
        about: "Gemma 2 9B: norms before and behind, capped scores, every other layer through a window",
        config: include_str!("../presets/gemma-2-9b.json"),
    },
    Preset {
        name: "gemma-3-1b",
        about: "Gemma 3 1B: one key-value head, all but every sixth layer through a window",
        config: include_str!("../presets/gemma-3-1b.json"),
    },
    Preset {
        name: "gpt-oss-20b",
        about: "GPT-OSS 20B: sinks, every other layer through a window, four of 32 experts",
        config: include_str!("../presets/gpt-oss-20b.json"),
    },
    Preset {
        name: "llava-1.5-7b",
        about: "LLaVA-1.5 7B: CLIP at 336 pixels and a projector of two layers in front of Llama",
        config: include_str!("../presets/llava-1.5-7b.json"),
    },
    Preset {
        name: "qwen2.5-vl-7b",
        about: "Qwen2.5-VL 7B: pictures of any size, attention in windows, in front of Qwen2.5",
        config: include_str!("../presets/qwen2.5-vl-7b.json"),
    },
    Preset {
        name: "qwen3-vl-8b",
        about: "Qwen3-VL 8B: pictures of any size, features into the first three layers of Qwen3",
        config: include_str!("../presets/qwen3-vl-8b.json"),
    },
    Preset {
        name: "dummy-shallow-resnet",
        about: "ShallowResNet: a small residual network for trying out collectors",
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
