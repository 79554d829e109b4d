//! Names of folders for regions, which may be called anything.
//!
//! Letters, digits, `_`, `-` and `.` stay; any other byte is written as `%` and two hexadecimal digits, and a dot in
//! front too, so that no name is `..` or hidden. Nested names are joined with `+`, a domain stands before `@`. As these
//! signs are written with `%` inside a name, no two regions have the same folder. Names too long for a file system are
//! cut and end in `%-` and a number made of the whole.

use std::collections::HashSet;

use types::RegionStyle;

use super::key::RegionKey;

/// Longest name that is not cut. File systems allow 255 bytes.
const LONGEST: usize = 120;

/// A folder for each region, in order; no two are the same.
pub(super) fn folder_names<'a>(keys: impl IntoIterator<Item = &'a RegionKey>) -> Vec<String> {
    let mut taken = HashSet::new();
    keys.into_iter()
        .map(|key| {
            let name = folder_name(key);
            // Only names that were cut can meet, and then the later one gets a number.
            let free = (1u32..).map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") });
            let name = free.into_iter().find(|name| !taken.contains(name)).unwrap_or(name);
            taken.insert(name.clone());
            name
        })
        .collect()
}

fn folder_name(key: &RegionKey) -> String {
    let names: Vec<String> = key.segments.iter().map(|name| encoded(name)).collect();
    let mut whole = names.join("+");
    if let Some(domain) = &key.domain {
        whole = format!("{}@{whole}", encoded(domain));
    }
    if key.style == RegionStyle::StartEnd {
        whole += "%start-end";
    }
    if whole.len() <= LONGEST {
        return whole;
    }
    // Everything encoded is ASCII, so any byte is a place to cut; a cut inside `%XX` leaves a sign that ends in `%-`.
    format!("{}%-{:016x}", &whole[..LONGEST - 18], fingerprint(whole.as_bytes()))
}

fn encoded(name: &str) -> String {
    if name.is_empty() {
        return "%".to_owned();
    }
    let mut text = String::with_capacity(name.len());
    for (place, byte) in name.bytes().enumerate() {
        match byte {
            b'.' if place == 0 => text += "%2E",
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => text.push(char::from(byte)),
            other => text += &format!("%{other:02X}"),
        }
    }
    text
}

/// FNV-1a: short, and the same on every machine.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::key::key;
    use super::*;

    fn named(domain: Option<&str>, segments: &[&str]) -> RegionKey {
        RegionKey {
            domain: domain.map(Arc::from),
            style: RegionStyle::PushPop,
            segments: segments.iter().map(|name| Arc::from(*name)).collect(),
        }
    }

    #[test]
    fn names_that_look_alike_get_folders_of_their_own() {
        let keys = [
            key("A/A1"),
            named(None, &["A::A1"]),
            named(None, &["A_A1"]),
            named(None, &["A__A1"]),
            named(None, &["A+A1"]),
            named(None, &["A%2BA1"]),
            named(Some("A"), &["A1"]),
            named(None, &["A@A1"]),
            RegionKey { style: RegionStyle::StartEnd, ..key("A/A1") },
        ];
        let folders = folder_names(&keys);
        let expected = ["A+A1", "A%3A%3AA1", "A_A1", "A__A1", "A%2BA1", "A%252BA1", "A@A1", "A%40A1", "A+A1%start-end"];
        assert_eq!(folders, expected);
    }

    #[test]
    fn no_name_leaves_its_folder_or_hides_in_it() {
        let keys = [["../x"], [".."], ["."], [".git"], ["/etc/passwd"], [""], ["a\\b\0c"], ["Größe"]];
        let folders = folder_names(keys.iter().map(|names| named(None, names)).collect::<Vec<_>>().iter());
        let expected = ["%2E.%2Fx", "%2E.", "%2E", "%2Egit", "%2Fetc%2Fpasswd", "%", "a%5Cb%00c", "Gr%C3%B6%C3%9Fe"];
        assert_eq!(folders, expected);
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let long = "n".repeat(300);
        let keys = [named(None, &[&long]), named(None, &[&format!("{long}x")]), named(None, &[&long, "x"])];
        let folders = folder_names(&keys);
        assert!(folders.iter().all(|name| name.len() <= LONGEST && name.starts_with("nnn")), "{folders:?}");
        assert_eq!(folders.iter().collect::<HashSet<_>>().len(), 3);
    }

    proptest! {
        #[test]
        fn different_regions_never_share_a_folder(
            names in proptest::collection::vec(proptest::collection::vec("[A.+@%_/: é]{0,4}", 1..4), 1..30),
        ) {
            let keys: HashSet<RegionKey> = names
                .iter()
                .map(|segments| named(None, &segments.iter().map(String::as_str).collect::<Vec<_>>()))
                .collect();
            let keys: Vec<RegionKey> = keys.into_iter().collect();
            let folders = folder_names(&keys);
            prop_assert_eq!(folders.iter().collect::<HashSet<_>>().len(), keys.len());
            for folder in folders {
                prop_assert!(!folder.is_empty() && !folder.starts_with('.') && !folder.contains(['/', '\\', '\0']));
            }
        }
    }
}
