//! Which regions can be measured in one run of the profiler, where a result is a whole range.
//!
//! A profiler that replays ranges takes the outermost range that matches and nothing inside of it. Regions inside one
//! another therefore need runs of their own, and as many as the deepest chain of them suffice: each region goes into the
//! first run where nothing around it is asked for.

use super::include::{Include, expression_of};
use super::key::RegionKey;

/// Regions in the fewest runs; each run is a list of places in `regions`.
pub fn runs_for_ranges(regions: &[RegionKey]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..regions.len()).collect();
    // What is around comes first, so that what is inside sees it.
    order.sort_by_key(|place| regions[*place].segments.len());
    let wanted: Vec<Include> = regions.iter().map(|region| Include::new(&expression_of(region))).collect();
    let mut run_of: Vec<usize> = vec![0; regions.len()];
    for (index, place) in order.iter().enumerate() {
        let around = surroundings(&regions[*place]);
        // A run is as deep as the deepest that stands in the way. An expression names its region wherever it is nested,
        // so more than the region's own surroundings can stand in it.
        let taken = order[..index].iter().filter(|other| !wanted[**other].matching(&around).is_empty());
        run_of[*place] = taken.map(|other| run_of[*other] + 1).max().unwrap_or(0);
    }
    let runs = run_of.iter().max().map_or(0, |last| last + 1);
    (0..runs).map(|run| (0..regions.len()).filter(|place| run_of[*place] == run).collect()).collect()
}

fn surroundings(region: &RegionKey) -> Vec<RegionKey> {
    std::iter::successors(region.parent(), RegionKey::parent).collect()
}

#[cfg(test)]
mod tests {
    use super::super::key::key;
    use super::*;

    fn runs(paths: &[&str]) -> Vec<Vec<String>> {
        let keys: Vec<RegionKey> = paths.iter().map(|path| key(path)).collect();
        let names = |run: Vec<usize>| run.into_iter().map(|place| paths[place].to_owned()).collect();
        runs_for_ranges(&keys).into_iter().map(names).collect()
    }

    #[test]
    fn as_many_runs_as_regions_are_nested() {
        assert_eq!(runs(&["A", "A/A1", "B"]), [vec!["A", "B"], vec!["A/A1"]]);
        assert_eq!(runs(&["A/A1", "B", "C/D/E"]), [["A/A1", "B", "C/D/E"]]);
        assert_eq!(
            runs(&["A", "A/A1", "A/A1/A2", "B/B1", "B"]),
            [vec!["A", "B"], vec!["A/A1", "B/B1"], vec!["A/A1/A2"]]
        );
        assert!(runs(&[]).is_empty());
    }

    #[test]
    fn a_name_that_stands_elsewhere_too_does_not_hide_what_is_inside_there() {
        // `A/` would also match the A inside B, and take B/A/X with it.
        assert_eq!(runs(&["A", "B/A/X"]), [["A"], ["B/A/X"]]);
        assert_eq!(runs(&["LLM@A", "A/X"]), [["LLM@A", "A/X"]], "a domain is a name of its own");
    }
}
