//! Lengths of time as arguments have them.

use std::time::Duration;

/// `60s`, `500ms`, `2m` or `1.5h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds = match &text[number.len()..] {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time with a unit, such as 60s, 500ms, 2m or 1h".to_owned()),
    };
    let time = number.parse::<f64>().ok().and_then(|number| Duration::try_from_secs_f64(number * seconds).ok());
    time.filter(|time| !time.is_zero()).ok_or_else(|| "expected a time above zero, such as 60s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for nonsense in ["60", "s", "-1s", "0s", "1 fortnight", "NaNs", ""] {
            assert!(duration(nonsense).is_err(), "{nonsense}");
        }
    }
}
