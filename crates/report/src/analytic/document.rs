//! The whole report for machines, as JSON and as YAML with the same content.

use types::AnalyticReport;

use crate::ReportError;

/// The report as indented JSON, with a newline at the end. The same report gives the same bytes.
pub fn json(report: &AnalyticReport) -> Result<String, ReportError> {
    let mut text = serde_json::to_string_pretty(report)
        .map_err(|error| ReportError::NotWritable { format: "JSON", reason: error.to_string() })?;
    text.push('\n');
    Ok(text)
}

/// The report as YAML. The same report gives the same bytes.
pub fn yaml(report: &AnalyticReport) -> Result<String, ReportError> {
    crate::yaml(report)
}

#[cfg(test)]
mod tests {
    use types::Flops;

    use super::*;
    use crate::analytic::sample;
    use crate::validate;

    #[test]
    fn json_reads_back_and_follows_its_schema() {
        let report = sample::report();
        let text = json(&report).unwrap();
        assert!(text.ends_with("}\n"));
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
        assert_eq!(json(&report).unwrap(), json(&report.clone()).unwrap());
        assert_eq!(yaml(&report).unwrap(), yaml(&report.clone()).unwrap());
    }
}
