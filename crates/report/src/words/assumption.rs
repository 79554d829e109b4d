//! What a replay with each change assumes: clauses behind "assumes", one row a change.

use std::sync::LazyLock;

use types::Remark;

use super::cause::family;
use super::rows::{Row, rows};
use super::template::{first, lines};

/// Every change: the first clause that can be said.
static ASSUMPTIONS: LazyLock<Vec<Row>> = LazyLock::new(|| rows(include_str!("assumptions.txt")));

/// What the recording adds to any of them.
const RECORDING: &[&str] = &[
    "the host is as slow as recorded; if it ran ahead of the GPU, this would save at most {at_most}",
    "?may_have_waited the trace does not show when the host waits for the GPU, so the lower bound is zero",
    "?waits_unknown the trace does not show when the host waits for the GPU, so the upper bound covers all of that work",
];

/// An assumption in words; absent where the remark is none.
pub(crate) fn said(remark: &Remark) -> Option<String> {
    let row = ASSUMPTIONS.iter().find(|row| row.id == remark.id)?;
    let facts = remark.facts.clone().with_known("kernels", remark.facts.name("family").map(family));
    let mut clauses = vec![first(&row.templates, &facts)?];
    clauses.extend(lines(RECORDING, &facts));
    Some(clauses.join("; "))
}

#[cfg(test)]
mod tests {
    use types::{Base, Facts};

    use super::*;
    use crate::words::cause::tests::ids;

    #[test]
    fn every_change_has_its_row_and_every_row_a_change() {
        let mut rows: Vec<_> = ASSUMPTIONS.iter().map(|row| row.id.to_owned()).collect();
        rows.sort();
        assert_eq!(ids(&["replay/change.rs"], &["assumes."]), rows);
    }

    #[test]
    fn an_assumption_is_one_clause_and_says_what_the_trace_does_not_show() {
        let said = |id: &str, facts: Facts| said(&Remark::new(id, facts)).unwrap();
        let head = Facts::new().with_if("head", true).with_share("share", 0.1, Base::Itself);
        assert_eq!(said("assumes.share", head.clone()), "kernels of the LM head take 10.0% of their time");
        let copies = Facts::new().with_if("copies", true).with_share("share", 0.0, Base::Itself);
        let expected = "kernels that only copy do not run; the trace does not show when the host waits for the GPU, so the upper \
                        bound covers all of that work";
        assert_eq!(said("assumes.removed", copies.with_if("waits_unknown", true)), expected);
        let faster = Facts::new().with("family", "gemm").with("times", 1.25);
        assert_eq!(said("assumes.kernels", faster), "GEMM kernels run 1.25 times as fast");
    }
}
