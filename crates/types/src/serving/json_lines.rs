//! A log of requests as JSON Lines: a header, then one request per line. `ingest` reads it.

use serde::{Deserialize, Serialize};

use super::request_log::{RequestClock, RequestLog, RequestSource, yes};
use crate::Nanos;
use crate::schema::SchemaName;

/// Name and version of the format.
pub const REQUESTS_SCHEMA: SchemaName = SchemaName::new("requests", 1);

/// The first line: all of a log but its requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestLogHeader {
    /// [`REQUESTS_SCHEMA`].
    pub schema: String,
    /// What recorded the requests.
    #[serde(default = "ours")]
    pub source: RequestSource,
    /// The clock of their times.
    pub clock: RequestClock,
    /// How long the load took.
    pub duration_ns: Option<Nanos>,
    /// Whether requests list every chunk.
    #[serde(default = "yes")]
    pub every_chunk: bool,
}

/// A file in our format that does not say otherwise is ours.
const fn ours() -> RequestSource {
    RequestSource::LlmPerf
}

impl RequestLog {
    /// The log as JSON Lines.
    pub fn to_json_lines(&self) -> String {
        let mut text = line(&self.header());
        for request in &self.requests {
            text += &line(request);
        }
        text
    }

    fn header(&self) -> RequestLogHeader {
        RequestLogHeader {
            schema: REQUESTS_SCHEMA.to_string(),
            source: self.source,
            clock: self.clock,
            duration_ns: self.duration_ns,
            every_chunk: self.every_chunk,
        }
    }
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("headers and requests have only text for keys") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestRecord;

    #[test]
    fn a_log_is_a_header_and_a_line_per_request() {
        let log = RequestLog {
            source: RequestSource::LlmPerf,
            clock: RequestClock::Monotonic,
            requests: vec![RequestRecord { error: Some("two\nlines".to_owned()), ..RequestRecord::default() }; 2],
            duration_ns: Some(Nanos::new(5)),
            every_chunk: true,
        };
        let text = log.to_json_lines();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with(r#"{"schema":"llm-perf/requests/1","source":"llm_perf","clock":"monotonic""#));
        assert_eq!(serde_json::from_str::<RequestRecord>(lines[2]).unwrap(), log.requests[1]);
    }

    #[test]
    fn a_header_needs_no_more_than_its_schema_and_clock() {
        let header: RequestLogHeader =
            serde_json::from_str(r#"{"schema": "llm-perf/requests/1", "clock": "epoch"}"#).unwrap();
        assert_eq!(header.source, RequestSource::LlmPerf);
        assert!(header.every_chunk && header.duration_ns.is_none());
    }
}
