//! What each remark says: one row an id. Remarks are clauses, because pages put them behind a colon, into a table or after "note:".

use std::sync::LazyLock;

use types::{Facts, Remark};

use super::rows::{Row, rows};
use super::template::lines;
use super::{assumption, cause};

/// Every remark but those with words of their own: all templates that can be said are joined.
static REMARKS: LazyLock<Vec<Row>> = LazyLock::new(|| rows(include_str!("remarks.txt")));

/// Says a remark, unless it is said already.
pub(crate) fn say(remark: &mut Remark) {
    if !remark.text.is_empty() {
        return;
    }
    say_all(&mut remark.facts);
    let row = REMARKS.iter().find(|row| row.id == remark.id);
    let row = row.map(|row| lines(&row.templates, &remark.facts).join(" "));
    remark.text = row.or_else(|| assumption::said(remark)).or_else(|| cause::said(remark)).unwrap_or_default();
}

/// Says the remarks among facts.
pub(crate) fn say_all(facts: &mut Facts) {
    facts.remarks_mut().into_iter().for_each(say);
}
