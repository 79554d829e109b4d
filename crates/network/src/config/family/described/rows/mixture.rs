//! Mixtures of experts.

use super::super::base::{
    ATTENTION_BIAS, BEHIND_ONE, CHOSEN, COMMON, EACH_HEAD, EVERYWHERE, SHARED, UNBIASED, WIDE, home, llama, with_sinks,
};
use super::super::{Described, Experts, Switch, Windows};
use crate::config::ConfigProblem;
use crate::config::decoder::{DecoderConfig, FeedForwardConfig, HeadNorms, NormPlacement, SharedConfig};
use crate::config::family::dense::{AFTER, scaled};
use crate::config::family::{NORMS_AROUND, Names, names};
use crate::config::fields::Fields;

/// Names of Granite's experts.
const fn granite(mixture: &'static str, own: Names) -> Names {
    Names { mixture, mixture_module: "block_sparse_moe", gate_module: "router", shared_module: "shared_mlp", ..own }
}

/// An expert of a width of its own that every token passes through, and Granite's factors.
fn granite_shared(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let inner = fields.count_or("shared_intermediate_size", 0)?;
    for layer in &mut decoder.layers {
        if let FeedForwardConfig::Mixture(mixture) = &mut layer.feed_forward {
            mixture.shared = (inner > 0).then_some(SharedConfig { count: None, inner, gated: false });
        }
    }
    scaled(fields, decoder)
}

pub(super) static ROWS: &[Described] = &[
    const {
        let names = Names {
            mixture: "SolarOpenMoE",
            gate: "SolarOpenTopkRouter",
            shared_module: "shared_experts",
            ..names!("SolarOpen")
        };
        Described {
            biases: [ATTENTION_BIAS, Switch::Never, Switch::Never],
            experts: Some(Experts { shared: &["n_shared_experts"], dense: (&[], 0), ..CHOSEN }),
            ..llama("solar_open", home!("solar_open"), names, SHARED)
        }
    },
    const {
        let names = Names {
            mixture: "ExaoneMoeSparseMoEBlock",
            gate: "ExaoneMoeTopkRouter",
            shared_module: "shared_experts",
            ..names!("ExaoneMoe")
        };
        Described {
            biases: UNBIASED,
            head_norms: EACH_HEAD,
            experts: Some(CHOSEN),
            windows: Windows::AllBut { every: "sliding_window_pattern", default: 4, bare: true },
            ..llama("exaone_moe", home!("exaone_moe"), names, SHARED)
        }
    },
    const {
        let names = Names { mixture: "HYV3MoE", shared_module: "shared_experts", ..names!("HYV3") };
        Described { head_norms: EACH_HEAD, experts: Some(CHOSEN), ..llama("hy_v3", home!("hy_v3"), names, SHARED) }
    },
    const {
        Described {
            head_norms: EACH_HEAD,
            experts: Some(EVERYWHERE),
            windows: Windows::Listed,
            ..llama("mellum", home!("mellum"), names!("Mellum"), COMMON)
        }
    },
    const {
        let names = Names { layer_norms: NORMS_AROUND, ..names!("FlexOlmo") };
        Described {
            placement: NormPlacement::After,
            head_norms: (HeadNorms::AllHeads, Switch::Always),
            experts: Some(Experts { normalised: false, ..EVERYWHERE }),
            ..llama("flex_olmo", home!("flex_olmo"), names, AFTER)
        }
    },
    const {
        let names = Names {
            mixture: "AriaTextMoELayer",
            gate_module: "router",
            shared_module: "shared_experts",
            ..names!("AriaText")
        };
        Described {
            experts: Some(Experts { shared: &["moe_num_shared_experts"], ..WIDE }),
            ..llama("aria_text", home!("aria"), names, SHARED)
        }
    },
    const {
        let names = granite("GraniteMoeSharedMoE", names!("GraniteMoeShared"));
        Described {
            experts: Some(WIDE),
            more: granite_shared,
            ..llama("granitemoeshared", home!("granitemoeshared"), names, SHARED)
        }
    },
    const {
        let names = granite("GraniteMoeSWAMoE", names!("GraniteMoeSWA"));
        Described {
            experts: Some(WIDE),
            windows: Windows::Listed,
            more: |fields, decoder| granite_shared(fields, with_sinks(decoder)),
            ..llama("granitemoe_swa", home!("granitemoe_swa"), names, SHARED)
        }
    },
    const {
        let names =
            Names { mixture: "DeepseekOcr2TextMoe", shared_module: "shared_experts", ..names!("DeepseekOcr2Text") };
        Described { experts: Some(BEHIND_ONE), ..llama("deepseek_ocr2_text", home!("deepseek_ocr2"), names, SHARED) }
    },
    const {
        let names =
            Names { mixture: "UnlimitedOcrTextMoe", shared_module: "shared_experts", ..names!("UnlimitedOcrText") };
        Described { experts: Some(BEHIND_ONE), ..llama("unlimited_ocr_text", home!("unlimited_ocr"), names, SHARED) }
    },
];
