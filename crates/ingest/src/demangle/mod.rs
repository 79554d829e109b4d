//! Names of kernels as people read them, from the names the compiler gives them.
//!
//! CUPTI hands out mangled names (the Itanium rules, <https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling>); Nsight
//! Systems and Nsight Compute show them in the style of NVIDIA's own demangler: `(int)4`, `char *`, `T2` for a parameter that
//! is one of the template's, `[lambda(float) (instance 1)]`. Kernels are compared by name across tools, so this writes
//! that style. What is not understood stays mangled.

mod arguments;
mod cursor;
mod name;
mod types;

use cursor::Cursor;

/// The name in readable form; `None` where it is not mangled, or in a way that is not understood.
pub(crate) fn demangle(mangled: &str) -> Option<String> {
    let mut cursor = Cursor::new(mangled.strip_prefix("_Z")?);
    let text = name::encoding(&mut cursor)?;
    // Clones of a function have a suffix such as `.constprop.0`.
    let is_whole = cursor.is_empty() || cursor.peek() == Some(b'.');
    (is_whole && text.len() <= cursor::LONGEST).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_read_as_nsight_systems_shows_them() {
        let pairs = include_str!("../../tests/data/kernel-names.tsv");
        let mut checked = 0;
        for line in pairs.lines().filter(|line| !line.starts_with('#')) {
            let (mangled, readable) = line.split_once('\t').unwrap();
            assert_eq!(demangle(mangled).as_deref(), Some(readable), "{mangled}");
            checked += 1;
        }
        assert!(checked > 50, "{checked}");
    }

    #[test]
    fn what_is_not_mangled_or_not_understood_is_left_alone() {
        for name in ["nvjet_sm90_tst_64x8", "", "_Z", "_Z3ab", "_ZN2at", "_Z1fIXspT_EEvv", "_Z99999999999f", "_ZZZZZ"] {
            assert_eq!(demangle(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_that_refers_to_itself_over_and_over_is_given_up() {
        let doubling: String = (0..40).map(|number| format!("1aIS{number}_S{number}_E")).collect();
        assert_eq!(demangle(&format!("_Z1f{doubling}")), None);
        assert_eq!(demangle(&format!("_Z1f{}", "P".repeat(100_000))), None);
        // One long part, and a hundred thousand references to it: 3 GB of text from 230 kB.
        let long = "a".repeat(30_000);
        assert_eq!(demangle(&format!("_Z1f30000{long}{}", "S_".repeat(100_000))), None);
    }
}
