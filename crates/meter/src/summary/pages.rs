//! The page of every module class: its formulas with the numbers of one instance.

use network::{Class, Module};
use types::{ComputeUnit, Cost, FormulaLine, LayerPage, LayerPart, LayerPass, OperationLines, Origin, Seconds, Spec};

use super::Subject;
use super::modules::ModuleTree;
use super::part_sums;
use crate::price::kind;
use crate::{OpRecord, Pass, Quantity, Roofline, Spread, Term, Times};

/// One page for each class of the model, in the order they first occur.
pub fn layer_pages(subject: &Subject<'_>, roofline: &Roofline<'_>) -> Vec<LayerPage> {
    let blueprint = subject.model.blueprint();
    let tree = ModuleTree::new(blueprint, subject.prediction);
    let mut classes: Vec<&'static str> = Vec::new();
    for (_, entry) in blueprint.modules() {
        if !classes.contains(&entry.class) {
            classes.push(entry.class);
        }
    }
    classes.into_iter().map(|class| page(subject, roofline, &tree, class)).collect()
}

fn page(subject: &Subject<'_>, roofline: &Roofline<'_>, tree: &ModuleTree<'_>, class: &'static str) -> LayerPage {
    let blueprint = subject.model.blueprint();
    let instances: Vec<Module> =
        blueprint.modules().filter(|(_, entry)| entry.class == class).map(|(module, _)| module).collect();
    let passes = passes(subject);
    let runs = |module: &Module| passes.iter().any(|(_, pass)| pass.modules[module.index()].is_some());
    let example = instances.iter().copied().find(runs).or_else(|| instances.first().copied());
    let known = Class::find(class);
    let id = |module: Module| {
        let shown = tree.shown().find(|(shown, _)| *shown == module);
        shown.map_or_else(|| blueprint.module(module).path.clone(), |(_, id)| id.to_owned())
    };
    let mut page = LayerPage {
        class: class.to_owned(),
        qualified_class: known.map_or_else(|| class.to_owned(), Class::qualified),
        aliases: known.map_or_else(Vec::new, |class| class.aliases.iter().map(|alias| (*alias).to_owned()).collect()),
        definition: known.map_or_else(String::new, |class| class.definition.to_owned()),
        instances: instances.len() as u64,
        example: String::new(),
        settings: Vec::new(),
        parameters: 0,
        parts: Vec::new(),
        passes: Vec::new(),
        assumptions: Vec::new(),
    };
    let Some(example) = example else { return page };
    let entry = blueprint.module(example);
    page.example = id(example);
    page.parameters = blueprint.parameters_under(&entry.path);
    page.settings = entry.settings.iter().map(|setting| (setting.name.to_owned(), setting.value.clone())).collect();
    page.parts = tree
        .shown()
        .filter(|(module, _)| blueprint.module(*module).parent == Some(example))
        .map(|(module, id)| LayerPart {
            name: id.rsplit('.').next().unwrap_or(id).to_owned(),
            class: blueprint.module(module).class.to_owned(),
        })
        .collect();
    for (name, pass) in &passes {
        page.passes.extend(layer_pass(subject, roofline, tree, name.clone(), (pass, example)));
    }
    // Experts read other weights than their class does elsewhere, so they are shown as well.
    let routed = instances.iter().copied().find(|module| runs(module) && tree.stands_for_several(*module));
    if let Some(routed) = routed.filter(|routed| *routed != example) {
        for (name, pass) in &passes {
            page.passes.extend(layer_pass(
                subject,
                roofline,
                tree,
                format!("{name}, as {}", id(routed)),
                (pass, routed),
            ));
        }
    }
    page.assumptions = assumptions(subject, routed.unwrap_or(example));
    page
}

/// The passes a page shows.
fn passes<'a>(subject: &Subject<'a>) -> Vec<(String, &'a Pass)> {
    let mut passes = vec![("prefill".to_owned(), &subject.prediction.prefill)];
    if let Some(decode) = &subject.prediction.decode {
        passes.push((format!("first decode step, {} keys", decode.first_length), &decode.first));
    }
    passes
}

fn layer_pass(
    subject: &Subject<'_>,
    roofline: &Roofline<'_>,
    tree: &ModuleTree<'_>,
    name: String,
    (pass, module): (&Pass, Module),
) -> Option<LayerPass> {
    let blueprint = subject.model.blueprint();
    let inside = |inner: Module| inner == module || blueprint.part_of(module, inner).is_some();
    let call = pass.modules[module.index()].as_ref();
    let all: Vec<&OpRecord> = pass.ops.iter().filter(|op| inside(op.module)).collect();
    if call.is_none() && all.is_empty() {
        return None;
    }
    // A module that is called several times, as a nonlinearity used twice, shows its operations once.
    let calls = call.map_or(1, |call| call.calls.max(1)) as usize;
    let own: Vec<&OpRecord> = all.iter().copied().filter(|op| op.module == module).collect();
    let total: Cost = all.iter().map(|op| op.cost).sum();
    let (parts, sums) = part_sums::of(tree, blueprint, module, &all, &own, total);
    let own = &own[..own.len().div_ceil(calls)];
    let time: Seconds = all.iter().map(|op| Times::of(&op.cost, op.price.matrix_dtype, roofline).total).sum();
    Some(LayerPass {
        name,
        inputs: call.map_or_else(Vec::new, |call| call.inputs.iter().map(shape).collect()),
        output: call.and_then(|call| call.output.as_ref()).map(shape),
        operations: own.iter().map(|op| operation(op, roofline)).collect(),
        parts,
        sums,
        total,
        time,
    })
}

fn operation(record: &OpRecord, roofline: &Roofline<'_>) -> OperationLines {
    let (_, about) = kind(&record.op);
    let times = Times::of(&record.cost, record.price.matrix_dtype, roofline);
    let mut against = Vec::new();
    if record.cost.flops_matrix.get() > 0
        && let Some(rate) = roofline.matrix(record.price.matrix_dtype)
    {
        let dtype = record.price.matrix_dtype;
        let own = roofline.hardware().peak(dtype, ComputeUnit::Matrix).is_some();
        let unit = if own { "matrix" } else { "vector" };
        against.push(format!("{dtype} {unit} peak {rate} for matrix FLOPs"));
    }
    if record.cost.flops_vector.get() > 0 {
        against.push(format!("fp32 vector peak {} for vector FLOPs", roofline.vector()));
    }
    against.push(format!("memory bandwidth {}", roofline.bandwidth()));
    OperationLines {
        name: record.op.name().to_owned(),
        definition: about.definition.to_owned(),
        derivation: about.text.to_owned(),
        source: about.source.to_owned(),
        inputs: record.inputs.iter().map(shape).collect(),
        output: shape(&record.output),
        formulas: record.price.terms.iter().map(|term| formula(term, record.spread.as_ref())).collect(),
        peaks: format!("{}: {}", roofline.hardware().name, against.join(", ")),
        time: times.total,
        bound: times.bound().name(),
    }
}

fn formula(term: &Term, spread: Option<&Spread>) -> FormulaLine {
    match spread {
        Some(spread) if term.quantity == Quantity::Weights => {
            let of_one = types::Bytes::new(u64::try_from(term.value).unwrap_or(u64::MAX));
            let Spread { experts, per_token, tokens, .. } = spread;
            FormulaLine {
                quantity: term.quantity.name().to_owned(),
                formula: format!("round({} * E * (1 - (1 - k / E) ^ T))", term.formula),
                substituted: format!(
                    "round({} * {experts}.0 * (1 - (1 - {per_token}.0 / {experts}.0) ^ {tokens}.0))",
                    term.substituted()
                ),
                value: spread.weights(of_one).get().into(),
                origin: Origin::Assumed,
            }
        }
        _ => FormulaLine {
            quantity: term.quantity.name().to_owned(),
            formula: term.formula.to_owned(),
            substituted: term.substituted(),
            value: term.value,
            origin: Origin::Modelled,
        },
    }
}

fn assumptions(subject: &Subject<'_>, module: Module) -> Vec<String> {
    let records = subject.prediction.prefill.ops.iter();
    let spread = records.filter(|op| op.module == module).find_map(|op| op.spread);
    let routed = spread.map(|spread| {
        format!(
            "Each token chooses {} of {} experts, independently and with equal probability. This page shows all experts \
             together: FLOPs and activations of every routed row, and the weights of the experts that prefill is \
             expected to use, {:.2} of {}.",
            spread.per_token,
            spread.experts,
            spread.distinct(),
            spread.experts
        )
    });
    routed.into_iter().collect()
}

fn shape(spec: &Spec) -> String {
    format!("{} {}", spec.dtype, spec.shape)
}
