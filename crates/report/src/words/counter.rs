//! Says data-quality counters.

use types::QualityCounter;

use super::counter_rows::COUNTERS;
use super::remark;
use super::template::lines;

/// Says a counter, unless it is said already.
pub(crate) fn say(counter: &mut QualityCounter) {
    if !counter.remedy.is_empty() {
        return;
    }
    remark::say_all(&mut counter.quantities);
    if let Some(row) = COUNTERS.iter().find(|row| row.id == counter.counter) {
        counter.remedy = lines(&row.templates, &counter.quantities).join(" ");
    }
}
