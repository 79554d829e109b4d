//! The page of one module class: what it is, what goes in and out, and every formula with its numbers.

use types::{FormulaLine, LayerPage, LayerPart, LayerPass, OperationLines, Origin};

use super::evaluate::FENCE;
use crate::markdown::{code, link, prose};
use crate::number::grouped;
use crate::table::{Column, Table, printable};

/// Parts of one class named one by one; more are counted.
const NAMED_PARTS: usize = 8;

/// The name of the page of `class`: letters, digits and `_` stand for themselves, other bytes for their code, so that
/// two classes never share a page and no page leaves its folder.
pub fn file_name(class: &str) -> String {
    let mut name = String::with_capacity(class.len() + 3);
    for byte in class.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' => name.push(char::from(byte)),
            other => name += &format!("-{other:02x}"),
        }
    }
    if name.is_empty() {
        name.push('-');
    }
    name + ".md"
}

/// The page as Markdown. Each formula is one line `quantity = formula = numbers = value` in a block of its own, as
/// [`check_line`](super::check_line) checks it.
pub fn layer_markdown(page: &LayerPage) -> String {
    let mut text = format!("# {}\n\nDefinition: {}\n\n", prose(&page.class), prose(&page.definition));
    text += &format!("- class: {}\n", code(&page.qualified_class));
    if !page.aliases.is_empty() {
        text += &format!("- also called: {}\n", names(&page.aliases));
    }
    text += &format!("- instances in the model: {}\n", grouped(page.instances));
    text += &format!("- instance shown here: {}\n", code(&page.example));
    text += &format!("- parameters of that instance, parts included: {}\n", grouped(page.parameters));
    text += &settings(page);
    text += &parts(&page.parts);
    if page.passes.is_empty() {
        text += "\n## Never runs\n\nThis class never runs on this workload, so it costs nothing there. Its parameters \
                 count all the same.\n";
    } else {
        text += "\nEvery number below is modelled. The table of a pass covers all calls of the instance in it, parts \
                 included; its operations are those of one call. `flops_*` are FLOPs, one multiply-add being two; all \
                 other quantities are bytes, and `N * b / 8` is what `N` elements of `b` bits take. `/` rounds down; a number with a decimal point makes its line one of real \
                 numbers.\n";
    }
    for pass in &page.passes {
        text += &self::pass(pass);
    }
    if !page.assumptions.is_empty() {
        text += "\n## Assumptions\n\n";
        for assumption in &page.assumptions {
            text += &format!("- {}: {}\n", Origin::Assumed, prose(assumption));
        }
    }
    text + "\n[Summary](../summary.md)\n"
}

fn settings(page: &LayerPage) -> String {
    if page.settings.is_empty() {
        return "\n## Constructor parameters\n\nNone.\n".to_owned();
    }
    let mut table = Table::new([Column::text("parameter"), Column::text("value")]);
    for (name, value) in &page.settings {
        table.row([code(name), code(value)]);
    }
    format!("\n## Constructor parameters\n\n{}", table.markdown())
}

fn parts(parts: &[LayerPart]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let mut by_class: Vec<(&str, Vec<&str>)> = Vec::new();
    for part in parts {
        match by_class.iter_mut().find(|(class, _)| *class == part.class) {
            Some((_, names)) => names.push(&part.name),
            None => by_class.push((&part.class, vec![&part.name])),
        }
    }
    let mut table = Table::new([Column::text("class"), Column::number("parts"), Column::text("names")]);
    for (class, names) in by_class {
        let listed = match names[..] {
            [first, second, ..] if names.len() > NAMED_PARTS => {
                format!("{}, {} and {} more", code(first), code(second), names.len() - 2)
            }
            _ => self::names(&names),
        };
        table.row([link(class, &file_name(class)), grouped(names.len() as u64), listed]);
    }
    format!("\n## Parts\n\n{}", table.markdown())
}

fn pass(pass: &LayerPass) -> String {
    let mut text = format!("\n## Pass: {}\n\n", prose(&pass.name));
    text += &format!("- in: {}\n", if pass.inputs.is_empty() { "nothing".to_owned() } else { names(&pass.inputs) });
    text += &format!("- out: {}\n", pass.output.as_deref().map_or("nothing".to_owned(), code));
    text += &format!("- least time of all of it: {}\n\n", pass.time);
    let (total, bytes) = (&pass.total, &pass.total.bytes);
    let mut table = Table::new([Column::text("all of it"), Column::number("value"), Column::number("exact")]);
    for (name, flops) in [("`flops_matrix`", total.flops_matrix), ("`flops_vector`", total.flops_vector)] {
        table.row([name.to_owned(), flops.to_string(), format!("{} FLOP", grouped(flops.get()))]);
    }
    let rows = [
        ("`bytes.weights`", bytes.weights),
        ("`bytes.activations_in`", bytes.activations_in),
        ("`bytes.activations_out`", bytes.activations_out),
        ("`bytes.kv_read`", bytes.kv_read),
        ("`bytes.kv_write`", bytes.kv_write),
        ("all bytes", bytes.total()),
    ];
    for (name, bytes) in rows {
        table.row([name.to_owned(), bytes.to_string(), format!("{} B", grouped(bytes.get()))]);
    }
    text += &table.markdown();
    if pass.operations.is_empty() {
        text += "\nIt has no operations of its own; its parts do all of it.\n";
    }
    for (index, operation) in pass.operations.iter().enumerate() {
        text += &self::operation(index + 1, operation);
    }
    text
}

fn operation(number: usize, operation: &OperationLines) -> String {
    let mut text = format!("\n### {number}. {}\n\n{}\n\n", prose(&operation.name), prose(&operation.definition));
    text += &format!("- in: {}\n", names(&operation.inputs));
    text += &format!("- out: {}\n", code(&operation.output));
    text += &format!("- derivation: {}\n", prose(&operation.derivation));
    text += &format!("- source: {}\n", prose(&operation.source));
    text += &format!("- held against: {}\n", prose(&operation.held_against));
    text += &format!("- least time: {}, bound by {}\n", operation.time, operation.bound);
    let (assumed, modelled): (Vec<_>, Vec<_>) =
        operation.formulas.iter().partition(|formula| formula.origin == Origin::Assumed);
    if operation.formulas.is_empty() {
        text += "\nIt computes nothing and moves nothing.\n";
    }
    text += &block("", &modelled);
    text + &block("\nAssumed, because an expectation enters:\n", &assumed)
}

fn block(title: &str, formulas: &[&FormulaLine]) -> String {
    if formulas.is_empty() {
        return String::new();
    }
    let mut text = format!("{title}\n{FENCE}\n");
    for FormulaLine { quantity, formula, substituted, value, .. } in formulas {
        text += &printable(&format!("{quantity} = {formula} = {substituted} = {}", grouped(*value)));
        text.push('\n');
    }
    text + "```\n"
}

fn names(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| code(name.as_ref())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytic::{check_line, formula_lines, sample};

    #[test]
    fn a_class_with_parts_and_own_operations_has_a_whole_page() {
        insta::assert_snapshot!(layer_markdown(&sample::mixture_page()));
    }

    #[test]
    fn a_class_that_never_runs_says_so() {
        insta::assert_snapshot!(layer_markdown(&sample::idle_page()));
    }

    #[test]
    fn every_printed_formula_gives_its_printed_result() {
        let page = layer_markdown(&sample::mixture_page());
        let lines: Vec<_> = formula_lines(&page).collect();
        assert_eq!(lines.len(), 9, "{lines:#?}");
        for line in lines {
            assert_eq!(check_line(line), Ok(()));
        }
    }

    #[test]
    fn a_wrong_result_on_a_page_is_found() {
        let mut page = sample::mixture_page();
        page.passes[0].operations[0].formulas[0].value += 1;
        let page = layer_markdown(&page);
        assert_eq!(formula_lines(&page).filter(|line| check_line(line).is_err()).count(), 1);
    }

    #[test]
    fn file_names_stay_apart_and_inside_their_folder() {
        assert_eq!(file_name("LayerNorm2d"), "LayerNorm2d.md");
        let classes = ["", "A_B", "A-B", "A.B", "A::B", "../A", "A/B", "A B", "Ä", "-"];
        let mut files: Vec<_> = classes.iter().map(|class| file_name(class)).collect();
        assert!(files.iter().all(|file| !file.contains(['/', '\\', ' ']) && !file.starts_with('.')), "{files:?}");
        files.sort();
        files.dedup();
        assert_eq!(files.len(), classes.len());
    }
}
