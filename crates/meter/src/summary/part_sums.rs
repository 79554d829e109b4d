//! A module as the sum over its parts and its own operations: each part under a symbol, with the formulas it follows.

use std::collections::HashMap;

use network::{Blueprint, Module};
use types::{Cost, FormulaLine, Origin, PartCost};

use super::modules::ModuleTree;
use crate::{OpRecord, Quantity};

/// What stands for the module's own operations in a sum.
const OWN: &str = "own";

/// Quantities a cost has.
const QUANTITIES: [Quantity; 7] = [
    Quantity::FlopsMatrix,
    Quantity::FlopsVector,
    Quantity::Weights,
    Quantity::ActivationsIn,
    Quantity::ActivationsOut,
    Quantity::KvRead,
    Quantity::KvWrite,
];

/// The parts of `module` that run in a pass and the sums over them, from all operations inside it (`all`, together `total`)
/// and those of its own.
pub(super) fn of(
    tree: &ModuleTree<'_>,
    blueprint: &Blueprint,
    module: Module,
    all: &[&OpRecord],
    own: &[&OpRecord],
    total: Cost,
) -> (Vec<PartCost>, Vec<FormulaLine>) {
    let mut parts: Vec<PartCost> = Vec::new();
    let mut of_part: HashMap<Module, Vec<&OpRecord>> = HashMap::new();
    for op in all {
        if let Some(part) = blueprint.part_of(module, tree.representative(op.module)) {
            of_part.entry(part).or_default().push(op);
        }
    }
    for (part, id) in tree.shown().filter(|(part, _)| blueprint.module(*part).parent == Some(module)) {
        let Some(inside) = of_part.remove(&part) else { continue };
        let entry = blueprint.module(part);
        let name = id.rsplit('.').next().unwrap_or(id).to_owned();
        let cost: Cost = inside.iter().map(|op| op.cost).sum();
        match parts.iter_mut().find(|other| other.class == entry.class && other.cost == cost) {
            Some(same) => same.names.push(name),
            None => parts.push(PartCost {
                symbol: symbol(&name),
                names: vec![name],
                class: entry.class.to_owned(),
                cost,
                formulas: formulas(inside.iter().copied().filter(|op| tree.representative(op.module) == part)),
                has_parts: inside.iter().any(|op| tree.representative(op.module) != part),
            }),
        }
    }
    if parts.is_empty() {
        return (parts, Vec::new());
    }
    let is_expected = all.iter().any(|op| op.spread.is_some());
    let own: Option<Cost> = (!own.is_empty()).then(|| own.iter().map(|op| op.cost).sum());
    let sums = QUANTITIES.into_iter().filter(|quantity| amount(&total, *quantity) > 0).map(|quantity| {
        let (mut formula, mut substituted) = (Vec::new(), Vec::new());
        for part in &parts {
            let (count, value) = (part.names.len(), amount(&part.cost, quantity));
            let times = if count == 1 { String::new() } else { format!("{count} * ") };
            formula.push(format!("{times}{}", part.symbol));
            substituted.push(format!("{times}{value}"));
        }
        if let Some(own) = &own {
            formula.push(OWN.to_owned());
            substituted.push(amount(own, quantity).to_string());
        }
        let is_assumed = is_expected && quantity == Quantity::Weights;
        FormulaLine {
            quantity: quantity.name().to_owned(),
            formula: formula.join(" + "),
            substituted: substituted.join(" + "),
            value: amount(&total, quantity),
            origin: if is_assumed { Origin::Assumed } else { Origin::Modelled },
        }
    });
    let sums = sums.collect();
    (parts, sums)
}

/// The formulas of each kind of operation, once.
fn formulas<'a>(operations: impl Iterator<Item = &'a OpRecord>) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for record in operations {
        let name = record.op.name();
        if !found.iter().any(|(known, _)| known == name) {
            let terms = record.price.terms.iter();
            let lines = terms.map(|term| format!("{} = {}", term.quantity.name(), term.formula)).collect();
            found.push((name.to_owned(), lines));
        }
    }
    found
}

/// The name of a part as formulas spell it: they know letters, digits and `_`, a letter first.
fn symbol(name: &str) -> String {
    let word: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let is_bare = name == OWN || !word.starts_with(|first: char| first.is_ascii_alphabetic());
    match name {
        "*" => "all".to_owned(),
        _ if is_bare => format!("part_{word}"),
        _ => word,
    }
}

fn amount(cost: &Cost, quantity: Quantity) -> u128 {
    let bytes = &cost.bytes;
    match quantity {
        Quantity::FlopsMatrix => cost.flops_matrix.get(),
        Quantity::FlopsVector => cost.flops_vector.get(),
        Quantity::Weights => bytes.weights.get().into(),
        Quantity::ActivationsIn => bytes.activations_in.get().into(),
        Quantity::ActivationsOut => bytes.activations_out.get().into(),
        Quantity::KvRead => bytes.kv_read.get().into(),
        Quantity::KvWrite => bytes.kv_write.get().into(),
        // Moves nothing and is no part of a cost.
        Quantity::Scratch => 0,
    }
}
