//! `schema` and `validate`: what our documents look like, and whether a file is one.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use collect::document;
use collect::run::{MANIFEST, StoredRun};
use report::ReportError;
use serde_json::Value;
use types::documents::ALL;
use types::{
    Failure, FileProblemKind, FileValidation, RunState, SchemaList, SchemaListing, SchemaTag, ValidationReport,
    ValidationVerdict, Violation,
};

/// Every document the tool writes.
pub fn schemas() -> SchemaList {
    let listing = |kind: &types::documents::DocumentKind| SchemaListing {
        name: kind.name.to_string(),
        about: kind.about.to_owned(),
    };
    SchemaList { schema: SchemaTag::new(), documents: ALL.iter().map(listing).collect() }
}

/// The JSON Schema of that name: `metrics`, or `llm-perf/metrics/1`.
pub fn schema(name: &str) -> Result<Value, ReportError> {
    report::find_schema(name).map(types::documents::DocumentKind::schema)
}

/// Holds every file against the schema it names; `-` is standard input.
pub fn validate_files(files: &[PathBuf]) -> ValidationReport {
    ValidationReport { schema: SchemaTag::new(), files: files.iter().map(|file| validate_file(file)).collect() }
}

fn validate_file(file: &Path) -> FileValidation {
    let name = file.display().to_string();
    match read(file) {
        Ok(text) => judge(name, report::validate(&text).map(|found| with_files(file, found))),
        Err(error) => FileValidation {
            hint: (error.kind() == io::ErrorKind::IsADirectory)
                .then(|| format!("pass the files in it, such as {}", file.join("manifest.json").display())),
            ..undecided(name, format!("cannot be read: {error}"))
        },
    }
}

/// The same with every file that is not as the manifest beside it lists it. The files of a run that is still being made change.
fn with_files(file: &Path, mut found: report::Validation) -> report::Validation {
    if file.file_name() != Some(OsStr::new(MANIFEST)) {
        return found;
    }
    // A relative name in the working folder has an empty parent, which is no folder.
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(run) = StoredRun::open(folder) else { return found };
    if run.state().0 == RunState::Running {
        return found;
    }
    let Ok(verification) = run.verify() else { return found };
    for problem in verification.problems {
        let place = run.manifest().files.iter().position(|listed| listed.path == problem.path).unwrap_or_default();
        let key = if problem.kind == FileProblemKind::Changed { "sha256" } else { "path" };
        let message = format!("{}: {}", problem.path, problem.detail);
        found.violations.push(Violation { pointer: format!("/files/{place}/{key}"), message });
    }
    found
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    if file == Path::new("-") {
        return document::read_from(io::stdin().lock(), document::MOST);
    }
    document::read(file)
}

fn judge(file: String, outcome: Result<report::Validation, ReportError>) -> FileValidation {
    match outcome {
        Ok(report::Validation { schema, violations }) => FileValidation {
            file,
            verdict: if violations.is_empty() { ValidationVerdict::Valid } else { ValidationVerdict::Invalid },
            document: Some(schema.to_string()),
            violations,
            error: None,
            hint: None,
        },
        Err(error) => {
            // Whatever was meant to be in the file, text that is neither JSON nor YAML is not it.
            let verdict = match error {
                ReportError::NotJson { .. } | ReportError::NotYaml { .. } => ValidationVerdict::Invalid,
                _ => ValidationVerdict::Undecided,
            };
            FileValidation { verdict, hint: error.hint(), ..undecided(file, error.to_string()) }
        }
    }
}

fn undecided(file: String, error: String) -> FileValidation {
    let verdict = ValidationVerdict::Undecided;
    FileValidation { file, verdict, document: None, violations: Vec::new(), error: Some(error), hint: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_of(text: &str) -> ValidationVerdict {
        judge("x".to_owned(), report::validate(text.as_bytes())).verdict
    }

    #[test]
    fn a_document_is_valid_invalid_or_not_for_us_to_say() {
        let schemas = serde_json::to_string(&schemas()).unwrap();
        assert_eq!(verdict_of(&schemas), ValidationVerdict::Valid);
        assert_eq!(verdict_of(r#"{"schema": "llm-perf/schemas/1"}"#), ValidationVerdict::Invalid);
        assert_eq!(verdict_of("{"), ValidationVerdict::Invalid);
        assert_eq!(verdict_of("{}"), ValidationVerdict::Undecided);
        assert_eq!(verdict_of(r#"{"schema": "llm-perf/schemas/9"}"#), ValidationVerdict::Undecided);
    }

    #[test]
    fn a_file_that_cannot_be_read_does_not_stop_the_others() {
        let report = validate_files(&["nowhere.json".into(), ".".into()]);
        let errors: Vec<&str> = report.files.iter().filter_map(|file| file.error.as_deref()).collect();
        assert_eq!(errors.len(), 2);
        assert!(errors[0].contains("No such file"), "{errors:?}");
        assert_eq!(report.files[1].hint.as_deref(), Some("pass the files in it, such as ./manifest.json"));
    }

    #[test]
    fn a_validation_report_is_itself_a_valid_document() {
        let report = validate_files(&["nowhere.json".into()]);
        assert_eq!(verdict_of(&serde_json::to_string(&report).unwrap()), ValidationVerdict::Valid);
    }

    #[test]
    fn a_schema_is_found_by_name() {
        let schema = serde_json::to_value(schema("manifest").unwrap()).unwrap();
        assert_eq!(schema["$id"], "llm-perf/manifest/1");
    }
}
