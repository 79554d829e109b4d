//! Says data-quality counters.

use types::QualityCounter;

use super::counter_rows::COUNTERS;
use super::{remark, template::lines};

/// Says a counter, unless it is said already.
pub(crate) fn say(counter: &mut QualityCounter) {
    if !counter.remedy.is_empty() {
        return;
    }
    remark::say_all(&mut counter.quantities);
    if let Some(row) = COUNTERS.iter().find(|row| row.counter == counter.counter) {
        counter.remedy = lines(row.remedy, &counter.quantities).join(" ");
    }
}
