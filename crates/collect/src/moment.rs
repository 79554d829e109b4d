//! This moment, on a clock that somebody may have set to any year.

use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// This moment in the local time zone. After the year 9999, which dates are not written for, the last moment that can be.
pub(crate) fn moment() -> Zoned {
    at(SystemTime::now())
}

fn at(time: SystemTime) -> Zoned {
    let end = if time < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::try_from(time).unwrap_or(end).to_zoned(TimeZone::system())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_beyond_all_calendars_is_no_panic() {
        let year = |years: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(years * 31_556_952);
        assert_eq!(at(year(30)).year(), 2000);
        assert_eq!(at(year(9_000)).year(), 9999);
        assert!(at(SystemTime::UNIX_EPOCH - Duration::from_secs(400_000_000_000)).year() < -9_000);
    }
}
