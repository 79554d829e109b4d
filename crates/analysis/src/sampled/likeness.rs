//! How alike two spellings of a kernel are. Each tool demangles in its own way: nsys writes `at::native::f<(int)4, c10::Half>`
//! where ncu writes `f<4, Half>`, and ncu cuts unnamed namespaces to `unnamed>::`.

use std::collections::BTreeSet;

/// Words that every spelling has, or only some.
const NOISE: [&str; 12] =
    ["void", "const", "int", "unsigned", "long", "bool", "lambda", "instance", "operator", "unnamed", "char", "signed"];

/// How alike two spellings are, from 0 to 1: the words both have over the words either has. Namespaces do not count.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    let (one, other) = (words(one), words(other));
    let either = one.union(&other).count();
    if either == 0 { 1.0 } else { one.intersection(&other).count() as f64 / either as f64 }
}

fn words(name: &str) -> BTreeSet<&str> {
    let mut words = BTreeSet::new();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut rest = name;
    while let Some(start) = rest.find(is_word) {
        let tail = &rest[start..];
        let end = tail.find(|letter| !is_word(letter)).unwrap_or(tail.len());
        let (word, after) = tail.split_at(end);
        if !after.starts_with("::") && !NOISE.contains(&word) {
            words.insert(word);
        }
        rest = after;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampled::spelled::{NCU, NSYS};

    #[test]
    fn spellings_of_one_kernel_are_nearer_than_two_kernels_of_one_name() {
        let other = NCU.replace("CUDAFunctor_add", "CUDAFunctor_mul");
        assert!(likeness(NSYS, NCU) > 0.99, "{}", likeness(NSYS, NCU));
        assert!(likeness(NSYS, &other) < likeness(NSYS, NCU));
    }
}
