//! What each caveat says: one row a kind.

use types::{Caveat, CaveatKind};

use super::template::lines;

/// The heading above caveats, on every front.
pub(crate) const READ_FIRST: &str = "Read this first";

/// The templates of a kind, of which all that can be said are joined.
const fn templates(kind: CaveatKind) -> &'static [&'static str] {
    match kind {
        CaveatKind::Partial => &["This run is partial. *reasons"],
        CaveatKind::ModelMisfit => &[],
        CaveatKind::NotComparable => &["Different {aspect}: {sides}. {meaning}.", "`{run}`: {disturbed}."],
        CaveatKind::Disturbed => &[],
        CaveatKind::Noisy => &[],
        CaveatKind::ProfilerAttached => &[],
        CaveatKind::UnreliableCalibration => &[],
        CaveatKind::PartlyModelled => &[],
        CaveatKind::AssumedDtype => &[],
        CaveatKind::IncompleteTrace => &[],
    }
}

/// Says a caveat, unless it is said already.
pub(crate) fn say(caveat: &mut Caveat) {
    if caveat.text.is_empty() {
        caveat.text = lines(templates(caveat.kind), &caveat.quantities).join(" ");
    }
}
