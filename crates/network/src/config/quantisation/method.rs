//! One reader for each `quant_method`. What a method stores beside a matrix is what its own library writes.

use std::sync::Arc;

use types::DType;

use super::pattern::Patterns;
use super::{Group, Quantisation, SKIPPED, Scope, compressed, grouped, uniform};
use crate::config::fields::{ConfigProblem, Fields};
use crate::{Scale, Span, WeightFormat};

/// Of a file that says outside of it how experts are kept, where it does.
pub(super) fn read(stated: &Fields<'_>, dtype: DType, experts: Option<&str>) -> Result<Quantisation, ConfigProblem> {
    let in_bits = ["load_in_4bit", "load_in_8bit", "_load_in_4bit", "_load_in_8bit"];
    let method = match stated.optional_text("quant_method")? {
        None if stated.states("quant_algo") => "modelopt".to_owned(),
        None if in_bits.iter().any(|name| stated.states(name)) => "bitsandbytes".to_owned(),
        None => {
            let expected = "the name of a method";
            return Err(ConfigProblem::Missing { field: stated.path_of("quant_method"), expected });
        }
        Some(method) => method,
    };
    match method.as_str() {
        "fp8" => fp8(stated, experts),
        "fbgemm_fp8" => fbgemm_fp8(stated),
        "awq" => awq(stated),
        "gptq" => gptq(stated),
        "bitsandbytes" => bitsandbytes(stated),
        "mxfp4" => mxfp4(stated),
        "compressed-tensors" => compressed::read(stated, dtype),
        "modelopt" | "modelopt_fp4" => modelopt(stated),
        other => {
            const KNOWN: &str = "fp8, fbgemm_fp8, awq, gptq, bitsandbytes, mxfp4, compressed-tensors or modelopt";
            let nearest = NEAREST.iter().find(|(names, _)| names.contains(&other)).map_or_else(
                || "leave `quantization_config` out of a copy of the file to model its weights unquantised".to_owned(),
                |(_, nearest)| format!("the nearest is {nearest}, whose bytes differ from its own"),
            );
            Err(stated.wrong("quant_method", format!("\"{other}\""), format!("{KNOWN}; {nearest}")))
        }
    }
}

/// Methods whose files are not read, and what is most like them.
const NEAREST: [(&[&str], &str); 5] = [
    (
        &["hqq", "quanto", "auto-round", "intel/auto-round", "gptqmodel"],
        "`gptq` with as many `bits` and the same `group_size`",
    ),
    (&["aqlm", "vptq", "higgs", "spqr", "quip", "exl2", "exl3"], "`gptq` in 4 bits, the fewest that are read"),
    (&["eetq", "quark", "torchao"], "`compressed-tensors` with as many bits"),
    (&["bitnet"], "`gptq` in 4 bits, twice its own two"),
    (&["fp_quant"], "`mxfp4` or `modelopt` with `quant_algo` NVFP4"),
];

/// Blocks with a single-precision scale each, as DeepSeek-V3 introduced them; one for the whole matrix without blocks.
fn fp8(stated: &Fields<'_>, experts: Option<&str>) -> Result<Quantisation, ConfigProblem> {
    let experts = expert_format(stated, experts)?;
    // Powers of two in one byte, where experts are kept apart; earlier checkpoints say so too and write single precision.
    let small = stated.optional_text("scale_fmt")?.is_some_and(|format| format == "ue8m0") && experts.is_some();
    let bits = if small { 8 } else { 32 };
    let mut scales = match stated.optional_counts("weight_block_size")?.as_deref() {
        None => vec![Scale::matrix(32)],
        Some([outputs, inputs]) if outputs * inputs > 0 => vec![Scale::block(*outputs, *inputs, bits)],
        Some(other) => return Err(stated.wrong("weight_block_size", format!("{other:?}"), "two positive integers")),
    };
    match stated.optional_text("activation_scheme")?.as_deref() {
        None | Some("dynamic") => {}
        Some("static") => scales.push(Scale::matrix(32)),
        Some(other) => {
            return Err(stated.wrong("activation_scheme", format!("\"{other}\""), "\"dynamic\" or \"static\""));
        }
    }
    let format = WeightFormat { dtype: DType::Fp8, scales, activations: Some(DType::Fp8) };
    let mut skipped = Patterns::read(stated, &SKIPPED)?;
    for name in NEVER_FP8 {
        skipped.add(stated, "ignore", name)?;
    }
    let mut read = uniform("fp8", format, skipped, Scope::AllButHead);
    if let Some(format) = experts {
        let mut targets = Patterns::default();
        targets.add(stated, "expert_dtype", "experts")?;
        read.groups.insert(0, Group { targets: Some(targets), format: Arc::new(format) });
    }
    Ok(read)
}

/// Projections of DeepSeek-V4 that its checkpoints keep as they are, as its published class does.
const NEVER_FP8: [&str; 5] =
    ["compressor.kv_proj", "compressor.gate_proj", "indexer.kv_proj", "indexer.gate_proj", "scorer.weights_proj"];

/// How experts are kept beside matrices in FP8, where that is another format.
fn expert_format(stated: &Fields<'_>, experts: Option<&str>) -> Result<Option<WeightFormat>, ConfigProblem> {
    match stated.optional_text("moe_quant_algo")?.as_deref() {
        None => {}
        Some("NVFP4") => return Ok(Some(nvfp4(group(stated, "group_size")?))),
        Some(other) => return Err(stated.wrong("moe_quant_algo", format!("\"{other}\""), "\"NVFP4\", or nothing")),
    }
    let inside = stated.optional_text("expert_dtype")?;
    match inside.as_deref().or(experts) {
        None | Some("fp8") => Ok(None),
        Some("fp4") => {
            let scales = vec![Scale::block(1, 32, 8)];
            Ok(Some(WeightFormat { dtype: DType::Fp4, scales, activations: Some(DType::Fp8) }))
        }
        Some(other) => Err(stated.wrong("expert_dtype", format!("\"{other}\""), "\"fp8\" or \"fp4\"")),
    }
}

/// A single-precision scale for every row.
fn fbgemm_fp8(stated: &Fields<'_>) -> Result<Quantisation, ConfigProblem> {
    let format = WeightFormat { dtype: DType::Fp8, scales: vec![Scale::row(32)], activations: Some(DType::Fp8) };
    Ok(uniform("fbgemm_fp8", format, Patterns::read(stated, &SKIPPED)?, Scope::AllButHead))
}

/// `qweight`, `qzeros` and half-precision `scales`; zero points are written whether used or not.
fn awq(stated: &Fields<'_>) -> Result<Quantisation, ConfigProblem> {
    let bits = match stated.optional_size("bits")? {
        None => stated.size_or("w_bit", 4)?,
        Some(bits) => bits,
    };
    if bits != 4 {
        return Err(stated.wrong("bits", bits, "4, the only width AWQ packs"));
    }
    let name = if stated.states("q_group_size") { "q_group_size" } else { "group_size" };
    let group = group(stated, name)?;
    let scales = vec![grouped(group, 16), grouped(group, bits)];
    let format = WeightFormat { dtype: DType::Int4, scales, activations: None };
    Ok(uniform("awq", format, Patterns::read(stated, &SKIPPED)?, Scope::DecoderLayers { head: false }))
}

/// `qweight`, `qzeros`, half-precision `scales` and `g_idx`, the group of every input.
fn gptq(stated: &Fields<'_>) -> Result<Quantisation, ConfigProblem> {
    let dtype = match stated.size("bits")? {
        4 => DType::Int4,
        8 => DType::Int8,
        other => return Err(stated.wrong("bits", other, "4 or 8")),
    };
    if let Some(kind) = stated.optional_text("checkpoint_format")?
        && !["gptq", "gptq_v2"].contains(&kind.as_str())
    {
        return Err(stated.wrong("checkpoint_format", format!("\"{kind}\""), "\"gptq\" or \"gptq_v2\""));
    }
    let group = group(stated, "group_size")?;
    let each_input = Scale { span: Span::Block { outputs: None, inputs: Some(1) }, bits: 32 };
    let scales = vec![grouped(group, 16), grouped(group, dtype.bits()), each_input];
    let mut skipped = Patterns::read(stated, &SKIPPED)?;
    if let Some(rules) = stated.optional_object("dynamic")? {
        for rule in rules.names() {
            let Some(expression) = rule.strip_prefix("-:") else {
                return Err(rules.wrong(
                    rule,
                    "a per-module rule",
                    "rules that exclude modules, which start with `-:`",
                ));
            };
            skipped.add_expression(&rules, rule, &format!("^(?:{expression})"))?;
        }
    }
    let head = stated.flag_or("lm_head", false)?;
    let format = WeightFormat { dtype, scales, activations: None };
    let mut read = uniform("gptq", format, skipped, Scope::DecoderLayers { head });
    if let Some(lists) = stated.optional_text_lists("modules_in_block_to_quantize")? {
        let mut targets = Patterns::default();
        for name in lists.iter().flatten() {
            targets.add(stated, "modules_in_block_to_quantize", name)?;
        }
        read.groups[0].targets = Some(targets);
    }
    Ok(read)
}

/// Runs of 64 weights with an absolute maximum each, in four bits; rows in eight.
fn bitsandbytes(stated: &Fields<'_>) -> Result<Quantisation, ConfigProblem> {
    let flag = |name: &str| Ok(stated.flag_or(name, false)? || stated.flag_or(&format!("_{name}"), false)?);
    let skipped = Patterns::read(stated, &["llm_int8_skip_modules"])?;
    // The head is left out by default; a list replaces the default.
    let scope = if Patterns::stated(stated, &["llm_int8_skip_modules"]) { Scope::All } else { Scope::AllButHead };
    if flag("load_in_8bit")? {
        let format = WeightFormat { dtype: DType::Int8, scales: vec![Scale::row(32)], activations: Some(DType::Int8) };
        return Ok(uniform("bitsandbytes", format, skipped, scope));
    }
    if !flag("load_in_4bit")? {
        return Err(stated.wrong("load_in_4bit", false, "true, or `load_in_8bit`: true"));
    }
    let dtype = match stated.optional_text("bnb_4bit_quant_type")?.as_deref() {
        Some("nf4") => DType::Int4,
        None | Some("fp4") => DType::Fp4,
        Some(other) => return Err(stated.wrong("bnb_4bit_quant_type", format!("\"{other}\""), "\"nf4\" or \"fp4\"")),
    };
    const RUN: u64 = 64;
    let table = Scale::matrix(16 * 32);
    let scales = match stated.flag_or("bnb_4bit_use_double_quant", false)? {
        false => vec![Scale { span: Span::Run(RUN), bits: 32 }, table],
        // The maxima are quantised once more, in runs of 256, with a table of 256 and an offset.
        true => vec![
            Scale { span: Span::Run(RUN), bits: 8 },
            Scale { span: Span::Run(RUN * 256), bits: 32 },
            table,
            Scale::matrix(256 * 32 + 32),
        ],
    };
    Ok(uniform("bitsandbytes", WeightFormat { dtype, scales, activations: None }, skipped, scope))
}

/// Stacks of experts in four-bit floats, a power of two in eight bits for every 32 inputs.
fn mxfp4(stated: &Fields<'_>) -> Result<Quantisation, ConfigProblem> {
    let format = WeightFormat { dtype: DType::Fp4, scales: vec![Scale::block(1, 32, 8)], activations: None };
    Ok(uniform("mxfp4", format, Patterns::read(stated, &SKIPPED)?, Scope::StackedExperts))
}

/// NVIDIA's ModelOpt: FP8 with a scale for each matrix, or NVFP4 with one for every 16 inputs beside it; or both, in groups.
fn modelopt(stated: &Fields<'_>) -> Result<Quantisation, ConfigProblem> {
    let inner = stated.optional_object("quantization")?;
    let stated = inner.as_ref().unwrap_or(stated);
    let skipped = Patterns::read(stated, &SKIPPED)?;
    let mut read = match stated.optional_text("quant_algo")?.as_deref() {
        Some("FP8") => uniform("modelopt", modelopt_fp8(), skipped, Scope::All),
        Some("NVFP4") => uniform("modelopt", nvfp4(group(stated, "group_size")?), skipped, Scope::All),
        Some("MIXED_PRECISION") if !stated.states("config_groups") => {
            let groups = layers(&stated.object("quantized_layers")?)?;
            Quantisation { method: "modelopt".to_owned(), kv: None, groups, skipped, scope: Scope::All, listed: None }
        }
        Some("MIXED_PRECISION") => {
            let groups = stated.object("config_groups")?;
            let groups = groups.names().map(|name| mixed(&groups.object(name)?)).collect::<Result<Vec<_>, _>>()?;
            Quantisation { method: "modelopt".to_owned(), kv: None, groups, skipped, scope: Scope::All, listed: None }
        }
        other => {
            let found = format!("\"{}\"", other.unwrap_or_default());
            return Err(stated.wrong("quant_algo", found, "\"FP8\", \"NVFP4\" or \"MIXED_PRECISION\""));
        }
    };
    for name in ["kv_cache_quant_algo", "kv_cache_scheme"] {
        read.kv = match stated.is_text(name).then(|| stated.optional_text(name)).transpose()?.flatten().as_deref() {
            None if name == "kv_cache_scheme" => compressed::cache(stated)?,
            None => None,
            Some("FP8") => Some(DType::Fp8),
            Some(other) => return Err(stated.wrong(name, format!("\"{other}\""), "\"FP8\" or null")),
        };
        if read.kv.is_some() {
            break;
        }
    }
    Ok(read)
}

fn modelopt_fp8() -> WeightFormat {
    let scales = vec![Scale::matrix(32), Scale::matrix(32)];
    WeightFormat { dtype: DType::Fp8, scales, activations: Some(DType::Fp8) }
}

fn nvfp4(group: Option<u64>) -> WeightFormat {
    let scales = vec![Scale::block(1, group.unwrap_or(16), 8), Scale::matrix(32), Scale::matrix(32)];
    WeightFormat { dtype: DType::Fp4, scales, activations: Some(DType::Fp4) }
}

/// Groups of a scheme that names every matrix it takes.
fn layers(stated: &Fields<'_>) -> Result<Vec<Group>, ConfigProblem> {
    let mut found: Vec<(WeightFormat, Patterns)> = Vec::new();
    for name in stated.names() {
        let one = stated.object(name)?;
        let format = match one.optional_text("quant_algo")?.as_deref() {
            Some("FP8") => modelopt_fp8(),
            Some("NVFP4") => nvfp4(group(&one, "group_size")?),
            // Matrices are turned back; there is no scale of activations.
            Some("W4A16_NVFP4") => {
                let inputs = group(&one, "group_size")?.unwrap_or(16);
                let scales = vec![Scale::block(1, inputs, 8), Scale::matrix(32)];
                WeightFormat { dtype: DType::Fp4, scales, activations: None }
            }
            other => {
                let found = format!("\"{}\"", other.unwrap_or_default());
                return Err(one.wrong("quant_algo", found, "\"FP8\", \"NVFP4\" or \"W4A16_NVFP4\""));
            }
        };
        let at = found.iter().position(|(known, _)| *known == format).unwrap_or_else(|| {
            found.push((format, Patterns::default()));
            found.len() - 1
        });
        found[at].1.add(stated, name, name)?;
    }
    let groups = found.into_iter();
    Ok(groups.map(|(format, targets)| Group { targets: Some(targets), format: Arc::new(format) }).collect())
}

/// One group of a mixed scheme: its modules by name, its format by the width of its floats.
fn mixed(stated: &Fields<'_>) -> Result<Group, ConfigProblem> {
    let weights = stated.object("weights")?;
    let format = match (weights.size_or("num_bits", 8)?, weights.optional_text("type")?.as_deref()) {
        (8, Some("float")) => modelopt_fp8(),
        (4, Some("float")) => nvfp4(group(&weights, "group_size")?),
        (bits, _) => return Err(weights.wrong("num_bits", bits, "4 or 8, of type \"float\"")),
    };
    Ok(Group { targets: Some(Patterns::read(stated, &["targets"])?), format: Arc::new(format) })
}

/// Inputs that share a scale; -1 is the whole row.
fn group(stated: &Fields<'_>, name: &str) -> Result<Option<u64>, ConfigProblem> {
    if !stated.states(name) && name == "group_size" {
        return Ok(None);
    }
    match stated.integer_or(name, 128)? {
        -1 => Ok(None),
        group @ 1.. => Ok(Some(group.unsigned_abs())),
        other => Err(stated.wrong(name, other, "a positive integer, or -1 for whole rows")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read_json(value: &Value, experts: Option<&str>) -> Result<Quantisation, ConfigProblem> {
        read(&Fields::new(value.as_object().unwrap()), DType::Bf16, experts)
    }

    #[test]
    fn experts_of_deepseek_v4_are_kept_in_four_bits_beside_blocks_in_eight() {
        let stated = json!({"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]});
        let read = read_json(&stated, Some("fp4")).unwrap();
        let [experts, others] = &read.groups[..] else { panic!("two groups") };
        let targets = experts.targets.as_ref().unwrap();
        assert!(targets.matches("model.layers.3.mlp.experts.7.up_proj", "Linear"));
        assert!(!targets.matches("model.layers.3.mlp.shared_experts.up_proj", "Linear"));
        assert_eq!((experts.format.dtype, experts.format.scales[0]), (DType::Fp4, Scale::block(1, 32, 8)));
        assert_eq!((others.format.dtype, others.format.scales[0]), (DType::Fp8, Scale::block(128, 128, 8)));
        assert!(read.skipped.matches("model.layers.3.self_attn.compressor.indexer.kv_proj", "Linear"));
        assert!(!read.skipped.matches("model.layers.3.self_attn.kv_proj", "Linear"));
    }

    #[test]
    fn experts_in_eight_bits_are_like_all_others_and_other_widths_are_refused() {
        let stated = json!({"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]});
        let read = read_json(&stated, None).unwrap();
        assert_eq!((read.groups.len(), read.groups[0].format.scales[0]), (1, Scale::block(128, 128, 32)));
        let problem = read_json(&stated, Some("int3")).unwrap_err().to_string();
        assert!(problem.contains("expert_dtype") && problem.contains("int3"), "{problem}");
    }

    #[test]
    fn a_scheme_may_name_every_matrix_it_takes() {
        let layers = json!({
            "backbone.layers.0.mixer.in_proj": {"quant_algo": "FP8"},
            "backbone.layers.1.mixer.experts.0.up_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
            "lm_head": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
        });
        let stated = json!({"quant_method": "modelopt", "quantization": {
            "quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8", "quantized_layers": layers,
        }});
        let read = read_json(&stated, None).unwrap();
        assert_eq!((read.groups.len(), read.kv), (2, Some(DType::Fp8)));
        let format = |path: &str| {
            let suits = |group: &&Group| group.targets.as_ref().unwrap().matches(path, "Linear");
            read.groups.iter().find(suits).map(|group| (group.format.dtype, group.format.activations))
        };
        assert_eq!(format("backbone.layers.0.mixer.in_proj"), Some((DType::Fp8, Some(DType::Fp8))));
        assert_eq!(format("backbone.layers.1.mixer.experts.0.up_proj"), Some((DType::Fp4, None)));
        assert_eq!(format("backbone.layers.1.mixer.experts.1.up_proj"), None);
    }
}
