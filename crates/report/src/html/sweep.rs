//! The page of a sweep: its chart, then the Markdown page of it.

use types::{CaveatKind, RunManifest, Sweep};

use super::masthead::{self, Notice};
use super::shell::{self, Section};
use crate::pages::sweep;
use crate::render::text::{code, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{count, grouped};

/// The page; the manifest is of the run that it is in.
pub fn sweep_page(found: &Sweep, manifest: Option<&RunManifest>) -> String {
    let chart = sweep::chart(found);
    let sections = [
        Section::new("chart", "Times and rates along the first axis", shell::figure("", &chart)),
        Section::new("points", "Points", sweep::page(found, "sweep.csv", "").html_below("points", READ_FIRST)),
    ];
    let stopped = sweep::stopped(found).map(|text| Notice::new(CaveatKind::Partial, &text));
    let assumed = sweep::assumed(found).map(|text| Notice::new(CaveatKind::AssumedDtype, &text));
    let notices: Vec<Notice> = stopped.into_iter().chain(assumed).collect();
    let mut about = vec![
        (
            "model",
            Some(format!("{}, {} parameters", prose(&found.model.model_id), grouped(found.model.parameters.total))),
        ),
        ("sweep", Some(format!("{} over {}", count(found.points.len() as u64, "point"), prose(&sweep::axes(found))))),
        ("origin", Some("modelled from the configuration; nothing was measured".to_owned())),
    ];
    about.extend(masthead::of_manifest(manifest));
    about.push(("run", manifest.map(|manifest| code(&manifest.run_id))));
    let title = format!("{}: sweep over {}", found.model.model_id, sweep::axes(found));
    shell::document(&title, &(masthead::banner(&notices) + &masthead::about(about)), &sections, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::sweep::sample;

    #[test]
    fn a_sweep_has_its_chart_and_its_points_on_one_page() {
        let page = sweep_page(&sample::sweep(), None);
        assert!(page.contains("<section id=\"chart\"") && page.contains("<svg") && page.contains("<table>"), "{page}");
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(!page.contains(" style="), "the policy lets no style in: {page}");
    }
}
