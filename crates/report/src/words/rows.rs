//! The rows of a file of words: an id with what people call it, at the margin, and below it templates, indented. `#` starts a comment.

/// One row.
pub(crate) struct Row {
    /// Its id, as in documents.
    pub(crate) id: &'static str,
    /// What people call it; empty where a file has no titles.
    pub(crate) title: &'static str,
    /// Its templates, see [`super::template`].
    pub(crate) templates: Vec<&'static str>,
}

impl Row {
    /// The templates that follow this word.
    pub(crate) fn part(&self, word: &str) -> Vec<&'static str> {
        let behind = |template: &&'static str| Some(template.strip_prefix(word)?.strip_prefix(' ')?.trim_start());
        self.templates.iter().filter_map(behind).collect()
    }
}

/// Every row of a file.
pub(super) fn rows(text: &'static str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix("  "), rows.last_mut()) {
            (Some(template), Some(row)) => row.templates.push(template),
            _ => {
                let (id, title) = line.split_once(": ").unwrap_or((line, ""));
                rows.push(Row { id, title, templates: Vec::new() });
            }
        }
    }
    rows
}
