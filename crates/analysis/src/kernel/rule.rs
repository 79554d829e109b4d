//! Which family and library a kernel's name belongs to: the first of the rules in `rules.txt` that it fits.

use std::sync::LazyLock;

use super::family::Family;
use super::spelling::Spelling;

/// One line of `rules.txt`, which says what its columns are.
struct Rule {
    pattern: &'static str,
    family: Family,
    library: Option<&'static str>,
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| lines().filter_map(rule).collect());

fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("rules.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn rule(line: &'static str) -> Option<Rule> {
    let mut columns = line.split_whitespace();
    let (pattern, family) = (columns.next()?, columns.next()?);
    let family = Family::ALL.into_iter().find(|known| known.name() == family)?;
    Some(Rule { pattern, family, library: columns.next() })
}

/// The family and library of the first rule that a name fits.
pub(super) fn find(name: &str) -> Option<(Family, Option<&'static str>)> {
    let spelling = Spelling::of(name);
    RULES.iter().find(|rule| matches(rule.pattern, &spelling)).map(|rule| (rule.family, rule.library))
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
        assert_eq!(RULES.len(), lines().count(), "a line of rules.txt is no rule");
        for (place, Rule { pattern, .. }) in RULES.iter().enumerate() {
            let (path, arguments) = pattern.split_once('<').unwrap_or((pattern, ""));
            let text = |part: &str| part.replace(['^', '*'], "");
            let example = Spelling { path: text(path), function: 0, arguments: text(arguments) };
            let first = RULES.iter().position(|rule| matches(rule.pattern, &example));
            let above = RULES[first.unwrap_or(0)].pattern;
            assert_eq!(first, Some(place), "`{pattern}` never matches: `{above}` comes first");
        }
    }
}
