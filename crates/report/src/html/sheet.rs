//! A page, put together: what a reader must know first, what it is of, the first screen, and the sections with their sources.

use std::collections::BTreeSet;

use types::RunManifest;

use super::masthead::{self, About, Notice};
use super::origin;
use super::shell::{self, Section};
use super::summary::{self, FirstScreen};
use crate::render::html_line;
use crate::render::text::code;

/// Every kind of page is one of these.
#[derive(Default)]
pub(super) struct Sheet<'a> {
    pub(super) title: String,
    /// The document that its pictures are drawn from.
    pub(super) document: &'static str,
    pub(super) notices: Vec<Notice>,
    /// What it is of; when, by which command and version follows.
    pub(super) about: About,
    pub(super) manifest: Option<&'a RunManifest>,
    pub(super) screen: FirstScreen,
    /// What is not on the page, in a sentence.
    pub(super) missing: String,
    pub(super) sections: Vec<Section>,
    pub(super) data: Vec<(&'static str, String)>,
}

impl Sheet<'_> {
    /// The file.
    pub(super) fn html(self) -> String {
        let Self { title, document, notices, mut about, manifest, screen, missing, mut sections, data } = self;
        about.extend(masthead::of_manifest(manifest));
        if let Some(manifest) = manifest.filter(|_| about.iter().all(|(name, _)| *name != "run")) {
            about.push(("run", Some(code(&manifest.run_id))));
        }
        let anchors = anchors(&sections);
        let find = |wanted: &[&'static str]| wanted.iter().copied().find(|anchor| anchors.contains(*anchor));
        for section in &mut sections {
            section.body = origin::with_sources(&section.body, find) + &origin::html(document, section.id, find);
        }
        let missing =
            if missing.is_empty() { missing } else { format!("<p class=\"m\">{}</p>\n", html_line(&missing)) };
        let top = masthead::banner(&notices) + &masthead::about(about) + &summary::html(screen, find) + &missing;
        shell::document(&title, &top, &sections, &data)
    }
}

/// Every place of the page that a link can lead to.
fn anchors(sections: &[Section]) -> BTreeSet<String> {
    let inside = sections.iter().flat_map(|section| section.body.split(" id=\"").skip(1));
    let inside = inside.filter_map(|rest| rest.split('"').next()).map(str::to_owned);
    sections.iter().map(|section| section.id.to_owned()).chain(inside).collect()
}
