//! Data quality: what was dropped, is uncertain or has no place.

use types::view::RunView;

use crate::render::text::{code, prose, sentence};
use crate::render::{Page, Table};
use crate::words::counter_rows;
use crate::words::number::{grouped, percent};

pub(super) fn quality(page: &mut Page, run: &RunView<'_>) {
    page.heading("Data quality");
    let mut table = Table::new("what | >count | >share affected | severity | meaning and remedy");
    for counter in &run.metrics.conclusions.quality {
        table.row([
            format!("{} ({})", prose(&counter_rows::title(&counter.counter)), code(&counter.counter)),
            grouped(counter.value),
            percent(counter.share),
            counter.severity.name().to_owned(),
            sentence(&counter.remedy),
        ]);
    }
    page.table_or(&table, "No data was dropped or left unattributed.");
}
