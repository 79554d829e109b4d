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
        name: "llama-3-8b",
        about: "Llama 3 8B: a plain decoder with grouped key-value heads",
        config: include_str!("../presets/llama-3-8b.json"),
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

    #[test]
    fn llama_3_8b_has_the_published_parameters() {
        assert_eq!(parameters("llama-3-8b"), 8_030_261_248);
    }
}
