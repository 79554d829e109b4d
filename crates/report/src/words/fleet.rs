//! What each finding about ranks says.

use std::sync::LazyLock;

use super::rows::{Row, rows};

static RULES: LazyLock<Vec<Row>> = LazyLock::new(|| rows(include_str!("fleet_rules.txt")));

/// The row of a rule.
pub(crate) fn words(rule: &str) -> Option<&'static Row> {
    RULES.iter().find(|row| row.id == rule)
}
