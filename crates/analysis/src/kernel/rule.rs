//! Finds the rule of the table that a kernel's name fits.

use super::family::Family;
use super::spelling::Spelling;
use super::table::rules;

/// The family and library of the first rule that a name fits.
pub(super) fn find(name: &str) -> Option<(Family, Option<&'static str>)> {
    let spelling = Spelling::of(name);
    rules().find(|(pattern, ..)| matches(pattern, &spelling)).map(|(_, family, library)| (*family, *library))
}

fn matches(pattern: &str, spelling: &Spelling) -> bool {
    let (path, arguments) = pattern.split_once('<').unwrap_or((pattern, ""));
    let in_path = match path.strip_prefix('^') {
        Some(path) => {
            let (first, rest) = path.split_once('*').unwrap_or((path, ""));
            let function = &spelling.path[spelling.function..];
            function.strip_prefix(first).is_some_and(|behind| contains(behind, rest))
        }
        None => contains(&spelling.path, path),
    };
    in_path && contains(&spelling.arguments, arguments)
}

/// Whether the parts of a pattern stand in a text one after the other.
fn contains(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    pattern.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_anchor_skip_and_look_into_arguments() {
        let fits = |pattern, name| matches(pattern, &Spelling::of(name));
        assert!(fits("^ampere_*gemm", "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"));
        assert!(!fits("^ampere_*gemm", "my_ampere_gemm") && fits("^scan", "void cub::ScanKernel<int>(int)"));
        assert!(fits("gemm", "my_gemm_kernel") && !fits("gemm", "my_kernel") && !fits("gemm", "f<gemm>(gemm)"));
        assert!(
            fits("kernel<*gemm", "void cutlass::Kernel<a_gemm>(x)") && !fits("kernel<*gemm", "void k::Kernel<a>(gemm)")
        );
    }

    #[test]
    fn no_rule_is_hidden_by_one_above_it() {
        let rules: Vec<_> = rules().collect();
        for (place, (pattern, ..)) in rules.iter().enumerate() {
            let (path, arguments) = pattern.split_once('<').unwrap_or((pattern, ""));
            let text = |part: &str| part.replace(['^', '*'], "");
            let example = Spelling { path: text(path), function: 0, arguments: text(arguments) };
            let first = rules.iter().position(|(pattern, ..)| matches(pattern, &example));
            assert_eq!(first, Some(place), "`{pattern}` never matches: `{}` comes first", rules[first.unwrap_or(0)].0);
        }
    }
}
