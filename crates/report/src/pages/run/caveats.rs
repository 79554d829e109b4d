//! What a reader must know before the first number.

use types::Metrics;

use crate::render::Page;
use crate::render::text::sentence;
use crate::words::caveat::READ_FIRST;

/// The caveats of a run; nothing where there are none.
pub(crate) fn callout(page: &mut Page, metrics: &Metrics) {
    let caveats = metrics.caveats.iter().filter(|caveat| !caveat.text.is_empty());
    page.callout(READ_FIRST, caveats.map(|caveat| sentence(&caveat.text)));
}
