//! `compressed-tensors`: groups of modules, each with a scheme of weights and of activations.

use std::sync::Arc;

use types::DType;

use super::pattern::Patterns;
use super::{Group, Quantisation, SKIPPED, Scope, grouped};
use crate::config::fields::{ConfigProblem, Fields};
use crate::{Scale, Span, WeightFormat};

/// Bits of `weight_shape`, two integers that packed formats write beside a matrix.
const SHAPE_BITS: u64 = 2 * 64;

/// `dtype` is that of the other weights, which scales are stored in too.
pub(super) fn read(stated: &Fields<'_>, dtype: DType) -> Result<Quantisation, ConfigProblem> {
    for name in ["sparsity_config", "transform_config"] {
        let other = stated.optional_object(name)?;
        if let Some(other) = other.filter(|other| other.stated().any(|field| !["ignore", "targets"].contains(&field))) {
            match other.optional_text("format")?.as_deref() {
                Some("dense") => {}
                _ => {
                    return Err(stated.wrong(name, "a scheme", "none: sparse and rotated weights are not modelled"));
                }
            }
        }
    }
    let whole = stated.optional_text("format")?;
    let groups = stated.object("config_groups")?;
    let mut read = Vec::new();
    for name in groups.names() {
        let group = groups.object(name)?;
        let format = match group.optional_text("format")? {
            None => whole.clone(),
            own => own,
        };
        // A list has modules with their parts beside them: `linear_attn` leaves `linear_attn.out_proj` to be quantised.
        let targets = Patterns::read(&group, &["targets"])?.whole();
        read.push(Group { targets: Some(targets), format: Arc::new(scheme(&group, format.as_deref(), dtype)?) });
    }
    Ok(Quantisation {
        method: "compressed-tensors".to_owned(),
        kv: cache(stated)?,
        groups: read,
        skipped: Patterns::read(stated, &SKIPPED)?.whole(),
        scope: Scope::All,
        listed: None,
    })
}

/// Element type of the cache under `kv_cache_scheme`.
pub(super) fn cache(stated: &Fields<'_>) -> Result<Option<DType>, ConfigProblem> {
    stated.optional_object("kv_cache_scheme")?.map(|scheme| element(&scheme)).transpose()
}

fn element(scheme: &Fields<'_>) -> Result<DType, ConfigProblem> {
    let kind = scheme.optional_text("type")?.unwrap_or_else(|| "int".to_owned());
    match (scheme.size_or("num_bits", 8)?, kind.as_str()) {
        (8, "float") => Ok(DType::Fp8),
        (8, "int") => Ok(DType::Int8),
        (4, "float") => Ok(DType::Fp4),
        (4, "int") => Ok(DType::Int4),
        (bits, kind) => Err(scheme.wrong("num_bits", format!("{bits} of type \"{kind}\""), "4 or 8 of int or float")),
    }
}

fn scheme(group: &Fields<'_>, format: Option<&str>, own: DType) -> Result<WeightFormat, ConfigProblem> {
    let weights = group.object("weights")?;
    let dtype = element(&weights)?;
    let inputs = group.optional_object("input_activations")?;
    let activations = inputs.as_ref().map(element).transpose()?;
    let is_static = match &inputs {
        None => false,
        Some(inputs) => !inputs.says_yes("dynamic"),
    };
    let strategy = weights.optional_text("strategy")?.unwrap_or_else(|| "tensor".to_owned());
    let size = weights.optional_size("group_size")?;
    let asymmetric = !weights.flag_or("symmetric", true)?;
    let bits = own.bits();
    let scales = match (format, dtype) {
        (Some("nvfp4-pack-quantized"), DType::Fp4) => {
            let mut scales = vec![Scale::block(1, size.unwrap_or(16), 8), Scale::matrix(32)];
            scales.extend(activations.map(|_| Scale::matrix(32)));
            scales
        }
        (Some("mxfp4-pack-quantized"), DType::Fp4) => vec![Scale::block(1, size.unwrap_or(32), 8)],
        (Some("float-quantized" | "naive-quantized"), DType::Fp8)
        | (Some("int-quantized" | "naive-quantized"), DType::Int8) => {
            let span = span(&weights, &strategy, size)?;
            let mut scales = vec![Scale { span, bits }];
            scales.extend(asymmetric.then_some(Scale { span, bits: dtype.bits() }));
            scales.extend(is_static.then_some(Scale::matrix(bits)));
            scales
        }
        (Some("pack-quantized"), DType::Int4 | DType::Int8) => {
            let span = span(&weights, &strategy, size)?;
            let mut scales = vec![Scale { span, bits }, Scale::matrix(SHAPE_BITS)];
            scales.extend(asymmetric.then_some(Scale { span, bits: dtype.bits() }));
            if weights.optional_text("actorder")?.is_some_and(|order| order == "group") {
                scales.push(Scale { span: Span::Block { outputs: None, inputs: Some(1) }, bits: 32 });
            }
            scales
        }
        (format, _) => {
            let expected = "float-quantized, int-quantized, naive-quantized, pack-quantized, nvfp4-pack-quantized or \
                            mxfp4-pack-quantized, with elements it can hold";
            let found = format.map_or_else(|| "absent".to_owned(), |format| format!("\"{format}\" of {dtype}"));
            return Err(group.wrong("format", found, expected));
        }
    };
    Ok(WeightFormat { dtype, scales, activations })
}

fn span(weights: &Fields<'_>, strategy: &str, size: Option<u64>) -> Result<Span, ConfigProblem> {
    Ok(match strategy {
        "tensor" => Span::Matrix,
        "channel" => Scale::row(0).span,
        "group" => grouped(Some(size.unwrap_or(128)), 0).span,
        "block" => match weights.counts("block_structure")?.as_slice() {
            [outputs, inputs] if outputs * inputs > 0 => Scale::block(*outputs, *inputs, 0).span,
            other => return Err(weights.wrong("block_structure", format!("{other:?}"), "two positive integers")),
        },
        other => {
            let expected = "\"tensor\", \"channel\", \"group\" or \"block\"";
            return Err(weights.wrong("strategy", format!("\"{other}\""), expected));
        }
    })
}
