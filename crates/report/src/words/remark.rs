//! What each remark says: one row an id.

use types::Remark;

use super::template::lines;
use super::{assumption, cause};

/// Every remark: its id, and templates of which all that can be said are joined.
pub(crate) const REMARKS: &[(&str, &[&str])] = &[];

/// Says a remark, unless it is said already.
pub(crate) fn say(remark: &mut Remark) {
    if !remark.text.is_empty() {
        return;
    }
    let row = REMARKS.iter().find(|(id, _)| *id == remark.id);
    let row = row.map(|(_, templates)| lines(templates, &remark.facts).join(" "));
    remark.text = row.or_else(|| assumption::said(remark)).or_else(|| cause::said(remark)).unwrap_or_default();
}
