//! Our own JSON Lines, as [`RequestLog::to_json_lines`] writes them.

use types::{REQUESTS_SCHEMA, RequestLog, RequestLogHeader, RequestRecord, SchemaName};

use super::text::RequestText;
use crate::IngestError;

/// Reads a header and a request per line.
pub(super) fn read(text: &RequestText<'_>) -> Result<RequestLog, IngestError> {
    let schema = text.first::<Schema>()?.schema;
    match schema.parse::<SchemaName>() {
        Ok(found) if found == REQUESTS_SCHEMA => {}
        Ok(found) if found.name() == REQUESTS_SCHEMA.name() => return Err(text.newer(&found.version().to_string())),
        _ => return Err(text.wrong_format(&format!("its schema is `{schema}`"))),
    }
    let (header, requests) = text.header_and_values::<RequestLogHeader, RequestRecord>()?;
    let RequestLogHeader { source, clock, duration_ns, every_chunk, .. } = header;
    Ok(RequestLog { source, clock, requests, duration_ns, every_chunk })
}

/// What is read of a header before its version is known.
#[derive(serde::Deserialize)]
struct Schema {
    schema: String,
}
