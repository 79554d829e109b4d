//! What each remark says: one row an id.

use types::Remark;

use super::template::lines;

/// Every remark: its id, and templates of which all that can be said are joined.
pub(crate) const REMARKS: &[(&str, &[&str])] = &[];

/// Says a remark, unless it is said already.
pub(crate) fn say(remark: &mut Remark) {
    let row = REMARKS.iter().find(|(id, _)| *id == remark.id);
    if let Some((_, templates)) = row.filter(|_| remark.text.is_empty()) {
        remark.text = lines(templates, &remark.facts).join(" ");
    }
}
