//! Units as Nsight Compute spells them, and the base unit each becomes.
//!
//! Prefixes are decimal: an L2 of 62,914,560 bytes is printed as `62.91 Mbyte`. Versions before 2024.3 spell times out
//! (`usecond`, `cycle/nsecond`) where later ones write `us` and `Ghz`.

use types::counter::CounterUnit;

/// The base unit of `unit`, and by which power of ten its numbers are multiplied to be in it.
pub(super) fn base(unit: &str) -> (CounterUnit, i32) {
    let (above, below) = match unit.split_once('/') {
        Some((above, below)) => (above, Some(below)),
        None => (unit, None),
    };
    let (word, power) = plain(above);
    let Some(below) = below else {
        let unit = match word {
            "" => CounterUnit::Plain,
            "%" => CounterUnit::Percent,
            "byte" => CounterUnit::Bytes,
            "ns" => CounterUnit::Nanoseconds,
            "hz" => CounterUnit::Hertz,
            other => CounterUnit::Other(other.into()),
        };
        return (unit, power);
    };
    let (below, below_power) = plain(below);
    // A rate is counted in a second, though a time is counted in nanoseconds.
    if below == "ns" {
        let power = power - below_power + 9;
        return match word {
            "byte" => (CounterUnit::BytesPerSecond, power),
            "cycle" => (CounterUnit::Hertz, power),
            other => (CounterUnit::Other(format!("{other}/s").into()), power),
        };
    }
    (CounterUnit::Other(format!("{word}/{below}").into()), power - below_power)
}

/// A word without its prefix. Words that are not known to take one keep all their letters.
fn plain(word: &str) -> (&str, i32) {
    match word {
        "ns" | "nsecond" => ("ns", 0),
        "us" | "usecond" => ("ns", 3),
        "ms" | "msecond" => ("ns", 6),
        "s" | "second" => ("ns", 9),
        "hz" | "Hz" => ("hz", 0),
        "Khz" | "KHz" | "kHz" => ("hz", 3),
        "Mhz" | "MHz" => ("hz", 6),
        "Ghz" | "GHz" => ("hz", 9),
        "Kbyte" => ("byte", 3),
        "Mbyte" => ("byte", 6),
        "Gbyte" => ("byte", 9),
        "Tbyte" => ("byte", 12),
        "Pbyte" => ("byte", 15),
        other => (other, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(unit: &str) -> (String, i32) {
        let (unit, power) = base(unit);
        (unit.to_string(), power)
    }

    #[test]
    fn sizes_times_and_frequencies_become_base_units() {
        assert_eq!(case("Mbyte"), ("byte".into(), 6));
        assert_eq!(case("us"), ("ns".into(), 3));
        assert_eq!(case("second"), ("ns".into(), 9));
        assert_eq!(case("Ghz"), ("hz".into(), 9));
        assert_eq!(case("%"), ("%".into(), 0));
        assert_eq!(case(""), (String::new(), 0));
    }

    #[test]
    fn rates_are_in_a_second() {
        assert_eq!(case("Gbyte/s"), ("byte/s".into(), 9));
        assert_eq!(case("byte/second"), ("byte/s".into(), 0));
        // 1.32 cycles in a nanosecond are 1.32e9 in a second.
        assert_eq!(case("cycle/nsecond"), ("hz".into(), 9));
        assert_eq!(case("cycle/usecond"), ("hz".into(), 6));
        assert_eq!(case("inst/s"), ("inst/s".into(), 0));
    }

    #[test]
    fn prefixes_go_from_both_sides_of_a_ratio() {
        assert_eq!(case("Kbyte/block"), ("byte/block".into(), 3));
        assert_eq!(case("%/Kbyte"), ("%/byte".into(), -3));
        assert_eq!(case("inst/cycle"), ("inst/cycle".into(), 0));
        assert_eq!(case("%/register"), ("%/register".into(), 0));
    }

    #[test]
    fn words_that_are_not_known_stay_as_they_are() {
        assert_eq!(case("SM"), ("SM".into(), 0));
        assert_eq!(case("Mwidget"), ("Mwidget".into(), 0));
    }
}
