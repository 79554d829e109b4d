//! A file of requests: any bytes are read or refused with the name of the file, times are in order, and what is read survives our
//! own format.

use ingest::requests::read;
use types::Nanos;

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let log = match read("requests.json", bytes) {
        Ok(log) => log,
        Err(error) => {
            assert!(error.to_string().starts_with("requests.json"), "{error}");
            return false;
        }
    };
    assert!(!log.requests.is_empty());
    for request in &log.requests {
        assert!(request.first_token().is_none_or(|first| first >= Nanos::ZERO));
        assert!(request.between_tokens().all(|gap| gap >= Nanos::ZERO));
    }
    assert_eq!(read("requests.jsonl", log.to_json_lines().as_bytes()).unwrap(), log);
    true
}
