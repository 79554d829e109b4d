//! Which kernels of a region count.

use regex::Regex;
use types::{KernelNameBase, KernelPatterns};

use crate::kernel::function_name;

/// Kernels to count: those of a name, without those left out. Leaving out wins.
#[derive(Clone, Debug, Default)]
pub struct KernelSelection {
    /// As it was given.
    patterns: KernelPatterns,
    base: KernelNameBase,
    include: Option<Pattern>,
    exclude: Vec<Pattern>,
}

#[derive(Clone, Debug)]
enum Pattern {
    Exact(String),
    Regex(Regex),
}

/// A selection that is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a regular expression: {reason}")]
pub struct SelectionError {
    /// What was given.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

impl KernelSelection {
    /// Understands a selection; each text is a whole name, or `regex:` and a pattern that may fit anywhere in one.
    pub fn new(base: KernelNameBase, include: Option<&str>, exclude: &[String]) -> Result<Self, SelectionError> {
        Ok(Self {
            patterns: KernelPatterns {
                include_patterns: include.map(str::to_owned).into_iter().collect(),
                exclude_patterns: exclude.to_vec(),
                kernels_left_out: 0,
            },
            base,
            include: include.map(Pattern::new).transpose()?,
            exclude: exclude.iter().map(|text| Pattern::new(text)).collect::<Result<_, _>>()?,
        })
    }

    /// The patterns, and how many kernels they left out.
    pub(super) fn patterns(&self, kernels_left_out: u64) -> KernelPatterns {
        KernelPatterns { kernels_left_out, ..self.patterns.clone() }
    }

    /// Whether every kernel counts.
    pub fn is_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_empty()
    }

    /// Whether a kernel of that demangled name counts.
    pub fn keeps(&self, name: &str) -> bool {
        let base = match self.base {
            KernelNameBase::Function => function_name(name),
            KernelNameBase::Demangled | KernelNameBase::Mangled => name,
        };
        // By its mangled name a kernel was chosen by the profiler, and what is left out must be told by what is printed.
        let included =
            self.base == KernelNameBase::Mangled || self.include.as_ref().is_none_or(|pattern| pattern.fits(base));
        included && !self.exclude.iter().any(|pattern| pattern.fits(base))
    }
}

impl Pattern {
    fn new(text: &str) -> Result<Self, SelectionError> {
        let Some(pattern) = text.strip_prefix("regex:") else { return Ok(Self::Exact(text.to_owned())) };
        let refused = |error: regex::Error| {
            let reason = error.to_string();
            let last = reason.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            SelectionError { pattern: pattern.to_owned(), reason: last.to_owned() }
        };
        Regex::new(pattern).map(Self::Regex).map_err(refused)
    }

    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Exact(text) => text == name,
            Self::Regex(regex) => regex.is_match(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::CUDAFunctor_add<float>>(int, float)";
    const GEMM: &str = "sm90_xmma_gemm_f32";

    fn kept(base: KernelNameBase, include: Option<&str>, exclude: &[&str]) -> [bool; 2] {
        let exclude: Vec<String> = exclude.iter().map(|text| (*text).to_owned()).collect();
        let selection = KernelSelection::new(base, include, &exclude).unwrap();
        [selection.keeps(ADD), selection.keeps(GEMM)]
    }

    #[test]
    fn a_name_is_exact_and_a_pattern_fits_anywhere() {
        let function = KernelNameBase::Function;
        assert_eq!(kept(function, None, &[]), [true, true]);
        assert_eq!(kept(function, Some("vectorized_elementwise_kernel"), &[]), [true, false]);
        assert_eq!(kept(function, Some("elementwise"), &[]), [false, false]);
        assert_eq!(kept(function, Some("regex:elementwise|gemm"), &[]), [true, true]);
        assert_eq!(kept(function, Some("regex:CUDAFunctor"), &[]), [false, false]);
        assert_eq!(kept(KernelNameBase::Demangled, Some("regex:CUDAFunctor"), &[]), [true, false]);
        assert_eq!(kept(KernelNameBase::Demangled, Some(ADD), &[]), [true, false]);
    }

    #[test]
    fn leaving_out_wins() {
        assert_eq!(kept(KernelNameBase::Function, Some("regex:."), &["regex:gemm"]), [true, false]);
        assert_eq!(kept(KernelNameBase::Function, Some(GEMM), &[GEMM]), [false, false]);
        assert_eq!(kept(KernelNameBase::Mangled, Some("_Z3foo"), &["regex:gemm"]), [true, false]);
    }

    #[test]
    fn a_broken_pattern_is_refused_with_its_words() {
        let error = KernelSelection::new(KernelNameBase::Function, Some("regex:gemm("), &[]).unwrap_err();
        assert_eq!(error.to_string(), "`gemm(` is not a regular expression: unclosed group");
    }
}
