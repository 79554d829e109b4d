//! What a reader must know first, on every front.

use types::Metrics;

use crate::render::Page;
use crate::render::text::sentence;
use crate::words::caveat::READ_FIRST;

/// Adds the caveats of a run, unless it has none.
pub(crate) fn callout(page: &mut Page, metrics: &Metrics) {
    page.callout(READ_FIRST, metrics.conclusions.caveats.iter().map(|caveat| sentence(&caveat.text)));
}
