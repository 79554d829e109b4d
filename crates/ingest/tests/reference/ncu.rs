//! Pages of ncu.

use std::collections::BTreeMap;

use llm_perf_ingest::ncu::{self, NcuFile};
use testkit::need::reference;

pub(crate) fn sections_of_other_makers_are_read_in_place() {
    let kernels = std::fs::read_dir(reference("third-party/ncu-rtx5090")).unwrap();
    let files = kernels.flat_map(|kernel| std::fs::read_dir(kernel.unwrap().path()).unwrap());
    let mut counts = BTreeMap::new();
    for file in files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "csv")) {
        let text = std::fs::read(&file).unwrap();
        let Ok(NcuFile::Details(page)) = ncu::read(&text[..], "page.csv") else {
            panic!("{} is no details page", file.display());
        };
        assert_eq!((page.works.len(), page.quality.len()), (1, 0), "{}", file.display());
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        let metrics = page.works[0].sections.iter().map(|section| section.metrics.len());
        let rows = metrics.sum::<usize>() + page.works[0].rules.len();
        assert_eq!(rows, lines - 1, "{}", file.display());
        let absent = page.works[0].sections.iter().flat_map(|section| &section.metrics).filter(|m| m.value.is_none());
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        *counts.entry(name).or_insert(0) += absent.count();
    }
    assert_eq!(counts.len(), 7);
    assert_eq!(counts["ncu.details.csv"], 6, "three counters this chip lacks, in two kernels");
}
