//! Sizes as arguments have them.

use types::Bytes;

/// `2GB`, `512MiB`.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    const UNITS: [(&str, u64); 6] = [
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
    ];
    let wrong = || "expected a size such as 2GB or 512MiB".to_owned();
    let (number, unit) =
        UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit))).ok_or_else(wrong)?;
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let bytes = number * *unit as f64;
    if (0.0..1e16).contains(&bytes) { Ok(Bytes::new(bytes as u64)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_or_refused() {
        assert_eq!(size("2GB"), Ok(Bytes::new(2_000_000_000)));
        assert_eq!(size("512MiB"), Ok(Bytes::new(512 << 20)));
        assert_eq!(size("0B"), Ok(Bytes::new(0)));
        for wrong in ["2", "GB", "-1GB", "nanGB", "1KB", "1e300GB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
