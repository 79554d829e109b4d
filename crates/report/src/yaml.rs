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
