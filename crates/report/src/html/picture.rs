//! A picture of a run that stays as it is: the same in the page and as a file.

use super::shell;

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The section it belongs to, which is also the beginning of its file's name.
    pub id: &'static str,
    pub(super) title: &'static str,
    /// What it is of, where a section has several.
    pub caption: String,
    /// What a reader has to know of its numbers.
    pub(super) note: String,
    /// The drawing.
    pub svg: String,
}

impl Picture {
    /// A name for its file: `lost-time-decode.svg`.
    pub fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let caption: String = self.caption.chars().map(plain).take(60).collect();
        let caption = caption.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
        if caption.is_empty() { format!("{}.svg", self.id) } else { format!("{}-{caption}.svg", self.id) }
    }

    /// The drawing with its colours, as a file of its own.
    pub fn file(&self) -> String {
        standalone(&self.svg)
    }
}

/// A drawing with its colours, as a file of its own.
pub(super) fn standalone(svg: &str) -> String {
    svg.replacen('>', &format!(">\n<style>svg{{background:var(--back)}}\n{}</style>", shell::PICTURE_STYLE), 1)
}
