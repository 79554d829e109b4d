//! The region report in a run folder: the document, and a folder for each region.

use analysis::region::RolledRegions;
use collect::run::RunFolder;
use types::counter::CounterTable;
use types::{RegionReport, UserError};

use crate::pipeline::folder::documents::REGIONS;

/// Writes both. The overview is a page of the run, and is written with the others.
pub(crate) fn write<'a>(
    folder: &mut RunFolder,
    report: &RegionReport,
    rolled: &RolledRegions,
    tables: impl Iterator<Item = &'a CounterTable>,
) -> Result<(), UserError> {
    folder.write_json(REGIONS, report)?;
    let tables: Vec<&CounterTable> = tables.filter(|table| !table.work.is_empty()).collect();
    for region in &rolled.regions {
        let place = |name: &str| format!("ncu/regions/{}/{name}", region.region.folder);
        let page = report::pages::regions::region_page(report, &region.region).markdown();
        folder.write_file(&place("report.md"), page.as_bytes())?;
        folder.write_file(&place("sections.txt"), report::pages::regions::sections_text(&region.region).as_bytes())?;
        let launches = region.launches(&tables, &rolled.metrics);
        let table = report::pages::regions::kernels_csv(&launches, &rolled.metrics);
        folder.write_file(&place("kernels.csv"), table.as_bytes())?;
    }
    Ok(())
}
