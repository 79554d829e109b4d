//! The page of one module class: what it is, what goes in and out, and every formula with its numbers.

use types::{FormulaLine, LayerPage, LayerPart, LayerPass, OperationLines, Origin};

use crate::render::Page;
use crate::render::table::{Table, printable};
use crate::render::text::{code, codes, link, prose};
use crate::words::number::grouped;

/// Parts of one class named one by one; more are counted.
const NAMED_PARTS: usize = 8;

/// Opens a block of formula lines.
const LANGUAGE: &str = "formula";

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
/// the tests read and check it.
pub fn layer_page(layer: &LayerPage) -> Page {
    let mut page = Page::new(&prose(&layer.class));
    page.paragraph(&format!("Definition: {}", prose(&layer.definition)));
    let mut facts = vec![format!("class: {}", code(&layer.qualified_class))];
    if !layer.aliases.is_empty() {
        facts.push(format!("also called: {}", codes(&layer.aliases)));
    }
    facts.push(format!("instances in the model: {}", grouped(layer.instances)));
    facts.push(format!("instance shown here: {}", code(&layer.example)));
    facts.push(format!("parameters of that instance, parts included: {}", grouped(layer.parameters)));
    page.list(facts);
    page.heading("Constructor parameters");
    let mut settings = Table::new("parameter | value");
    layer.settings.iter().for_each(|(name, value)| settings.row([code(name), code(value)]));
    page.table_or(&settings, "None.");
    parts(&mut page, &layer.parts);
    if layer.passes.is_empty() {
        page.heading("Never runs");
        page.paragraph("This class never runs on this workload, so it costs nothing. Its parameters still count.");
    } else {
        page.paragraph(
            "Every number below is modelled. The table of a pass covers all calls of the instance, parts included; the \
             operations below it are those of one call. `flops_*` are FLOPs; one multiply-add counts as two. All other \
             quantities are bytes, and `N` elements of `b` bits take `N * b / 8`. `/` rounds down, except on lines with a \
             decimal point, which use real numbers.",
        );
    }
    for pass in &layer.passes {
        self::pass(&mut page, pass);
    }
    if !layer.assumptions.is_empty() {
        page.heading("Assumptions");
        page.list(layer.assumptions.iter().map(|text| format!("{}: {}", Origin::Assumed, prose(text))));
    }
    page.paragraph("[Summary](../summary.md)");
    page
}

fn parts(page: &mut Page, parts: &[LayerPart]) {
    if parts.is_empty() {
        return;
    }
    let mut by_class: Vec<(&str, Vec<&str>)> = Vec::new();
    for part in parts {
        match by_class.iter_mut().find(|(class, _)| *class == part.class) {
            Some((_, names)) => names.push(&part.name),
            None => by_class.push((&part.class, vec![&part.name])),
        }
    }
    let mut table = Table::new("class | >parts | names");
    for (class, names) in by_class {
        table.row([link(class, &file_name(class)), grouped(names.len() as u64), named(&names)]);
    }
    page.heading("Parts");
    page.table(&table);
}

fn pass(page: &mut Page, pass: &LayerPass) {
    page.heading(&format!("Pass: {}", prose(&pass.name)));
    let inputs = (!pass.inputs.is_empty()).then(|| format!("in: {}", codes(&pass.inputs)));
    let output = pass.output.as_deref().map(|output| format!("out: {}", code(output)));
    let time = format!("roofline time of the pass: {}", pass.time);
    page.list(inputs.into_iter().chain(output).chain([time]));
    let (total, bytes) = (&pass.total, &pass.total.bytes);
    let mut table = Table::new("total | >value | >exact");
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
    page.table(&table);
    if !pass.sums.is_empty() {
        part_sums(page, pass);
    } else if pass.operations.is_empty() {
        page.paragraph("It does no work in this pass.");
    }
    for (index, operation) in pass.operations.iter().enumerate() {
        self::operation(page, index + 1, operation);
    }
}

/// The pass as the sum over the parts, and the formulas each part follows.
fn part_sums(page: &mut Page, pass: &LayerPass) {
    page.subheading("Sum over the parts");
    page.paragraph(if pass.operations.is_empty() {
        "It has no operations of its own: every quantity is the sum of its parts, each named by the symbol below."
    } else {
        "Every quantity is the sum of its parts, each named by the symbol below, plus `own`, its own operations."
    });
    formulas(page, &pass.sums);
    page.list(pass.parts.iter().map(|part| {
        let names: Vec<&str> = part.names.iter().map(String::as_str).collect();
        let meant = match names[..] {
            [only] if only == part.symbol => String::new(),
            [_] => format!(" ({})", codes(&names)),
            _ => format!(" (each of {})", named(&names)),
        };
        let own = part.formulas.iter().map(|(operation, lines)| {
            if lines.is_empty() {
                format!("{} (does no work)", code(operation))
            } else {
                format!("{}: {}", code(operation), codes(lines))
            }
        });
        let whole =
            part.has_parts.then(|| format!("the sum of its parts, on {}", link("its page", &file_name(&part.class))));
        let texts: Vec<String> = whole.into_iter().chain(own).collect();
        let class = link(&part.class, &file_name(&part.class));
        format!("{}{meant}, of class {class}: {}", code(&part.symbol), texts.join("; "))
    }));
}

/// Names one by one, or counted where there are many.
fn named(names: &[&str]) -> String {
    match names {
        [first, second, ..] if names.len() > NAMED_PARTS => {
            format!("{}, {} and {} more", code(first), code(second), names.len() - 2)
        }
        _ => codes(names),
    }
}

fn operation(page: &mut Page, number: usize, operation: &OperationLines) {
    page.subheading(&format!("{number}. {}", prose(&operation.name)));
    page.paragraph(&prose(&operation.definition));
    page.list([
        format!("in: {}", codes(&operation.inputs)),
        format!("out: {}", code(&operation.output)),
        format!("derivation: {}", prose(&operation.derivation)),
        format!("source: {}", prose(&operation.source)),
        format!("relative to: {}", prose(&operation.peaks)),
        format!("roofline time: {}, {}-bound", operation.time, operation.bound),
    ]);
    if operation.formulas.is_empty() {
        page.paragraph("It does no work.");
    }
    formulas(page, &operation.formulas);
}

/// Formulas, those that rest on an expectation apart.
fn formulas(page: &mut Page, formulas: &[FormulaLine]) {
    let (assumed, modelled): (Vec<_>, Vec<_>) = formulas.iter().partition(|formula| formula.origin == Origin::Assumed);
    block(page, &modelled);
    if !assumed.is_empty() {
        page.paragraph("Assumed, because they contain an expected value:");
        block(page, &assumed);
    }
}

fn block(page: &mut Page, formulas: &[&FormulaLine]) {
    let line = |FormulaLine { quantity, formula, substituted, value, .. }: &&FormulaLine| {
        printable(&format!("{quantity} = {formula} = {substituted} = {}", grouped(*value))).into_owned()
    };
    if !formulas.is_empty() {
        page.code(LANGUAGE, formulas.iter().map(line));
    }
}

#[cfg(test)]
mod tests {
    use testkit::formula::{check_line, formula_lines};

    use super::*;
    use crate::pages::analytic::sample;

    #[test]
    fn a_class_with_parts_and_own_operations_has_a_whole_page() {
        insta::assert_snapshot!(layer_page(&sample::mixture_page()).markdown());
    }

    #[test]
    fn a_class_that_never_runs_says_so() {
        insta::assert_snapshot!(layer_page(&sample::idle_page()).markdown());
    }

    #[test]
    fn every_printed_formula_gives_its_printed_result() {
        let page = layer_page(&sample::mixture_page()).markdown();
        let lines: Vec<_> = formula_lines(&page).collect();
        assert_eq!(lines.len(), 10, "{lines:#?}");
        for line in lines {
            assert_eq!(check_line(line), Ok(()));
        }
    }

    #[test]
    fn a_wrong_result_on_a_page_is_found() {
        let mut page = sample::mixture_page();
        page.passes[0].operations[0].formulas[0].value += 1;
        let page = layer_page(&page).markdown();
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
