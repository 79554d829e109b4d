//! Documents as YAML.

use serde::Serialize;

use crate::ReportError;

/// A document as YAML, keys in their own order. The same document gives the same bytes.
pub fn yaml(document: &impl Serialize) -> Result<String, ReportError> {
    let mut options = serde_saphyr::SerializerOptions::default();
    options.compact_list_indent = false;
    options.prefer_block_scalars = false;
    let mut text = String::new();
    serde_saphyr::to_fmt_writer_with_options(&mut text, document, options)
        .map_err(|error| ReportError::NotWritable { format: "YAML", reason: error.to_string() })?;
    Ok(text)
}

/// A document in YAML as JSON, which all documents are read from.
pub fn json_of_yaml(text: &str) -> Result<Vec<u8>, ReportError> {
    let not_yaml = |error: serde_saphyr::Error| ReportError::NotYaml { reason: error.to_string() };
    let value: serde_json::Value = serde_saphyr::from_str(text).map_err(not_yaml)?;
    Ok(value.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use types::{AnalyticReport, Flops};

    use super::*;
    use crate::pages::analytic::sample;
    use crate::validate;

    #[test]
    fn json_reads_back_and_follows_its_schema() {
        let report = sample::report();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<AnalyticReport>(&text).unwrap(), report);
        assert_eq!(validate(text.as_bytes()).unwrap().violations, []);
    }

    #[test]
    fn yaml_says_what_json_says() {
        let mut report = sample::report();
        // Past 64 bits, and texts that YAML would take for something else.
        if let Some(stage) = report.stages.get_mut("decode") {
            stage.flops_matrix = Flops::new(55_340_232_221_128_654_845);
        }
        report.notes =
            ["1.0", "null", "2025-01-01", "a: b # c", "- x", "*", "two\nlines", ""].map(str::to_owned).to_vec();
        let text = yaml(&report).unwrap();
        assert_eq!(serde_saphyr::from_str::<AnalyticReport>(&text).unwrap(), report);
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
    }

    #[test]
    fn writing_twice_gives_the_same_bytes() {
        let report = sample::report();
        assert_eq!(yaml(&report).unwrap(), yaml(&report.clone()).unwrap());
    }
}
