//! What a driver answers, one JSON object a line.

use serde::Deserialize;
use serde_json::Value;

/// One line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum QueryEvent {
    /// The engine is there and has the tables.
    Hello {
        /// Version of what the driver speaks.
        protocol: u32,
        /// The interpreter.
        python: String,
        /// The engine.
        engine: String,
        /// Its version.
        version: String,
    },
    /// The columns of the answer.
    Columns {
        /// Their names.
        names: Vec<String>,
        /// Their types, as the engine names them.
        types: Vec<String>,
    },
    /// Rows of the answer.
    Rows {
        /// A value for each column.
        rows: Vec<Vec<Value>>,
    },
    /// It gave up.
    Failed(QueryFailure),
    /// Everything was said.
    Done {
        /// Rows of the answer.
        rows: u64,
        /// Whether there are more than were asked for.
        more: bool,
    },
}

/// Why a driver gave up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct QueryFailure {
    /// What kind of trouble.
    pub kind: QueryFailureKind,
    /// In words, perhaps with an excerpt of the statement.
    pub message: String,
}

/// Kinds of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryFailureKind {
    /// The engine cannot be imported, or not be kept to what is named.
    Engine,
    /// Not one SELECT.
    Statement,
    /// The engine does not understand the statement.
    Sql,
    /// A file is no such table.
    Table,
    /// Memory ran out.
    Memory,
    /// The cluster cannot be reached, or lost the query.
    Cluster,
    /// Anything else.
    #[serde(other)]
    EngineFailed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_understood_line_by_line() {
        let lines = [
            r#"{"event": "hello", "protocol": 1, "python": "3.11.7", "engine": "duckdb", "version": "2.0.0"}"#,
            r#"{"event": "columns", "names": ["rank", "share"], "types": ["INTEGER", "DOUBLE"]}"#,
            r#"{"event": "rows", "rows": [[0, 0.5], [null, "NaN"]]}"#,
            r#"{"event": "done", "rows": 2, "more": false}"#,
        ];
        let events: Vec<QueryEvent> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let QueryEvent::Rows { rows } = &events[2] else { panic!("{events:?}") };
        assert_eq!(rows[1], [Value::Null, Value::from("NaN")]);
        assert_eq!(events[3], QueryEvent::Done { rows: 2, more: false });
    }

    #[test]
    fn a_kind_of_trouble_nobody_knows_is_the_engines() {
        let line = r#"{"event":"failed","kind":"new","message":"m"}"#;
        let QueryEvent::Failed(failure) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
        assert_eq!(failure.kind, QueryFailureKind::EngineFailed);
    }
}
