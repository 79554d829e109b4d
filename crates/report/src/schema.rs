//! Finding a schema by its name.

use types::SchemaName;
use types::documents::{ALL, DocumentKind, find};

use crate::ReportError;

/// The document of that name: `metrics`, or `llm-perf/metrics/1`.
pub fn find_schema(name: &str) -> Result<&'static DocumentKind, ReportError> {
    if let Some(kind) = find(name) {
        return Ok(kind);
    }
    let parsed = name.parse::<SchemaName>().ok();
    match parsed.and_then(|found| Some((find(found.name())?.name.clone(), found))) {
        Some((known, found)) => Err(ReportError::UnknownVersion { found, known }),
        None => Err(ReportError::UnknownSchema { name: name.to_owned(), nearest: nearest(name) }),
    }
}

fn nearest(name: &str) -> Option<SchemaName> {
    let asked = name.strip_prefix("llm-perf/").unwrap_or(name).split('/').next()?;
    let meant = types::nearest(asked, ALL.iter().map(|kind| kind.name.name()))?;
    find(meant).map(|kind| kind.name.clone())
}

#[cfg(test)]
mod tests {
    use types::Failure;

    use super::*;

    fn refused(name: &str) -> String {
        let Err(error) = find_schema(name) else { panic!("{name} should not be found") };
        format!("{error}; {}", error.hint().unwrap_or_default())
    }

    #[test]
    fn every_document_is_found_by_both_of_its_names() {
        for kind in ALL {
            assert_eq!(find_schema(kind.name.name()).unwrap().name, kind.name);
            assert_eq!(find_schema(&kind.name.to_string()).unwrap().name, kind.name);
        }
    }

    #[test]
    fn what_is_not_found_is_refused_with_the_way_on() {
        let names =
            ["metrcs", "llm-perf/metric/1", "llm-perf/metrics/2", "Manifest", "env", "zzz", "", "llm-perf/", "x/y/z"];
        insta::assert_snapshot!(names.map(refused).join("\n"), @r"
        unknown schema `metrcs`; did you mean `llm-perf/metrics/1`?
        unknown schema `llm-perf/metric/1`; did you mean `llm-perf/metrics/1`?
        the schema is llm-perf/metrics/2, this llm-perf knows llm-perf/metrics/1; it belongs to a newer llm-perf; update this one
        unknown schema `Manifest`; did you mean `llm-perf/manifest/1`?
        unknown schema `env`; did you mean `llm-perf/environment/1`?
        unknown schema `zzz`; `llm-perf schema` lists all schemas
        unknown schema ``; `llm-perf schema` lists all schemas
        unknown schema `llm-perf/`; `llm-perf schema` lists all schemas
        unknown schema `x/y/z`; `llm-perf schema` lists all schemas
        ");
    }
}
