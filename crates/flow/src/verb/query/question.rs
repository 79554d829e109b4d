//! Ready questions and the views they and the user's own build on: one file of SQL each, one line in a table.

/// A ready question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its name.
    pub name: &'static str,
    /// Its statement; the first line says what it answers.
    pub sql: &'static str,
}

/// Makes a table of files in a folder.
macro_rules! files {
    ($folder:literal: $($name:literal,)+) => {
        [$(Question { name: $name, sql: include_str!(concat!($folder, "/", $name, ".sql")) },)+]
    };
}

/// Every question, in the order in which a run is usually looked at.
pub const QUESTIONS: [Question; 18] = files! {"question":
    "runs", "device-time", "top-kernels", "families", "idle-causes", "launch-gaps", "copies", "memory-peak",
    "stages", "modules", "findings",
    "steps-by-rank", "step-spread", "stragglers", "kernel-slower-on-one-rank",
    "exposed-communication", "collective-bandwidth", "last-to-arrive",
};

/// Every view. One uses those before it.
pub const VIEWS: [Question; 6] = files! {"view":
    "device_work", "busy", "gaps", "device_parts", "exposed_communication", "overlap",
};

impl Question {
    /// What it answers.
    pub fn answers(&self) -> &'static str {
        self.sql.lines().next().unwrap_or_default().trim_start_matches("--").trim()
    }
}

/// The question of that name, or the name that was probably meant.
pub fn find(name: &str) -> Result<&'static Question, Option<&'static str>> {
    QUESTIONS
        .iter()
        .find(|question| question.name == name)
        .ok_or_else(|| types::nearest(name, QUESTIONS.iter().map(|question| question.name)))
}

/// Whether a text can only be the name of a question: statements have spaces.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::query::statement::single_select;

    #[test]
    fn every_file_is_one_select_that_starts_with_what_it_answers() {
        for question in QUESTIONS.iter().chain(&VIEWS) {
            assert!(question.sql.starts_with("-- ") && question.answers().len() > 20, "{}", question.name);
            assert_eq!(single_select(question.sql), Ok(question.sql), "{}", question.name);
        }
    }

    #[test]
    fn every_file_is_in_its_table() {
        for (folder, table) in [("question", &QUESTIONS[..]), ("view", &VIEWS[..])] {
            let folder = format!("{}/src/verb/query/{folder}", env!("CARGO_MANIFEST_DIR"));
            let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let mut names: Vec<String> =
                files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
            let mut listed: Vec<&str> = table.iter().map(|question| question.name).collect();
            names.sort();
            listed.sort_unstable();
            assert_eq!(names, listed);
        }
    }

    #[test]
    fn a_name_that_is_misspelt_has_a_nearest() {
        assert_eq!(find("top-kernels").unwrap().name, "top-kernels");
        assert_eq!(find("topkernels"), Err(Some("top-kernels")));
        assert!(is_name("topkernels") && !is_name("SELECT 1") && !is_name(""));
    }
}
