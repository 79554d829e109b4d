//! Expressions that pick kernels by their names.

/// Shortest piece of a name that is taken for the name: a kernel that the run did not show may have a shorter one too.
const SHORTEST: usize = 6;

/// A pattern that matches any of `names` and nothing else.
pub fn any_of<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<String> = names.iter().map(|name| escaped(name.as_ref())).collect();
    format!("regex:^({})$", names.join("|"))
}

/// A pattern that matches any of `names` and none of `others`, by the shortest piece of each name that no other has:
/// whole names of eight templates are a kilobyte that nobody can read in a log.
pub fn told_from<S: AsRef<str>, O: AsRef<str>>(names: &[S], others: &[O]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let others: Vec<&str> = others.iter().map(AsRef::as_ref).filter(|other| !names.contains(other)).collect();
    let mut pieces: Vec<&str> = Vec::new();
    for name in &names {
        if pieces.iter().any(|piece| name.contains(piece)) {
            continue;
        }
        let Some(piece) = telling(name, &others) else { return any_of(&names) };
        pieces.push(piece);
    }
    format!("regex:.*({}).*", pieces.join("|"))
}

/// The shortest piece of `name`, of letters, digits and underscores, that none of `others` has.
fn telling<'a>(name: &'a str, others: &[&str]) -> Option<&'a str> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let pieces = |length: usize| {
        let all = name.as_bytes().windows(length).enumerate();
        all.filter(|(_, piece)| piece.iter().all(plain)).map(move |(start, _)| &name[start..start + length])
    };
    let lengths = SHORTEST.min(name.len())..=name.len();
    lengths
        .filter(|length| *length > 0)
        .find_map(|length| pieces(length).find(|piece| !others.iter().any(|other| other.contains(piece))))
}

/// A name as a pattern. Anything that is no letter, digit or underscore gets a backslash, except where that would give
/// it another meaning.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 16);
    for character in name.chars() {
        if r"\.^$|?*+()[]{}/".contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAST: &str =
        "_ZN2at6native27unrolled_elementwise_kernelIZZZNS0_23direct_copy_kernel_cudaERNS_18TensorIteratorBaseE";
    const ADD: &str =
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_21CUDAFunctorOnSelf_addIfEESt5arrayIPcLm2EEEEviT0_T1_";
    const MUL: &str = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEE";
    const WIDE: &str = "nvjet_sm90_tst_112x128_64x7_2x1_v_bz_TNN";
    const SPLIT: &str = "nvjet_sm90_tst_112x128_64x7_2x1_v_bz_splitK_TNN";

    fn finds(pattern: &str, name: &str) -> bool {
        // What the tool's expressions and these have in common.
        let (open, close) = (pattern.find('(').unwrap(), pattern.rfind(')').unwrap());
        pattern.starts_with("regex:.*(") && pattern[open + 1..close].split('|').any(|piece| name.contains(piece))
    }

    #[test]
    fn the_shortest_pieces_tell_kernels_apart() {
        let pattern = told_from(&[CAST, WIDE], &[ADD, MUL, SPLIT, CAST]);
        assert_eq!(pattern, "regex:.*(tive27|v_bz_T).*");
        for (name, chosen) in [(CAST, true), (WIDE, true), (ADD, false), (MUL, false), (SPLIT, false)] {
            assert_eq!(finds(&pattern, name), chosen, "{pattern}: {name}");
        }
    }

    #[test]
    fn a_piece_that_stands_for_two_is_said_once() {
        assert_eq!(told_from(&[ADD, MUL], &[CAST]), told_from(&[ADD], &[CAST]));
        assert_eq!(told_from(&["gemm"], &[] as &[&str]), "regex:.*(gemm).*");
    }

    #[test]
    fn a_name_inside_of_another_needs_all_of_both() {
        assert_eq!(told_from(&["copy", "scale.1"], &["copy_back"]), r"regex:^(copy|scale\.1)$");
    }
}
