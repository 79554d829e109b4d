//! The parts of a kernel's name that rules look at: which function it is, and what its template arguments say.
//!
//! Words in parameters, and words in the template arguments of a function that is known by itself, mislead: a pointwise
//! kernel that takes a `cublasGemvParams` is no GEMM. So the function and its arguments are looked at apart.

/// A name taken apart, all in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spelling {
    /// Namespaces and function, without template arguments and parameters: `at::native::reduce_kernel`.
    pub(super) path: String,
    /// Where in `path` the function's own name starts.
    pub(super) function: usize,
    /// All template arguments.
    pub(super) arguments: String,
}

impl Spelling {
    /// Takes a name apart, in the spelling of any tool; a mangled one that no tool has demangled too.
    pub(super) fn of(name: &str) -> Self {
        let mut spelling = match name.strip_prefix("_Z") {
            Some(mangled) => of_mangled(mangled),
            None => of_readable(last_word(name)),
        };
        spelling.path.make_ascii_lowercase();
        spelling.arguments.make_ascii_lowercase();
        spelling.function = spelling.path.rfind("::").map_or(0, |at| at + 2);
        spelling
    }
}

/// What stands after the last space outside all brackets: the name without its return type.
pub(super) fn last_word(name: &str) -> &str {
    let name = name.trim();
    let mut start = 0;
    for (at, letter) in outside_brackets(name) {
        // A qualifier or note after the parameters is no name.
        if letter == ' ' && name[at + 1..].starts_with(|next: char| next.is_alphabetic() || "_(<".contains(next)) {
            start = at + 1;
        }
    }
    &name[start..]
}

/// Letters that stand outside all brackets, with their places.
pub(super) fn outside_brackets(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut depth = 0usize;
    text.char_indices().filter(move |(_, letter)| match letter {
        '<' | '(' | '{' | '[' => {
            depth += 1;
            false
        }
        '>' | ')' | '}' | ']' => {
            depth = depth.saturating_sub(1);
            false
        }
        _ => depth == 0,
    })
}

fn of_readable(name: &str) -> Spelling {
    let mut spelling = Spelling::default();
    let (mut angles, mut others) = (0_usize, 0_usize);
    for letter in name.chars() {
        match letter {
            '<' if others == 0 => {
                if angles > 0 {
                    spelling.arguments.push(letter);
                }
                angles += 1;
            }
            '>' if angles > 0 => {
                angles -= 1;
                spelling.arguments.push(letter);
            }
            _ if angles > 0 => spelling.arguments.push(letter),
            '(' | '[' | '{' => others += 1,
            ')' | ']' | '}' => others = others.saturating_sub(1),
            _ if others == 0 => spelling.path.push(letter),
            _ => {}
        }
    }
    spelling.path.truncate(spelling.path.trim_end().len());
    spelling
}

/// The words of a mangled name: those before the first template list are the path, the others stand for the arguments.
/// Words are `<length><text>` (<https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling>).
fn of_mangled(mangled: &str) -> Spelling {
    let mut spelling = Spelling::default();
    let mut rest = mangled;
    let mut in_arguments = false;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let length: usize = rest[..digits].parse().unwrap_or(0);
        match rest.get(digits..digits + length).filter(|word| !word.is_empty() && digits > 0) {
            Some(word) => {
                let part = if in_arguments { &mut spelling.arguments } else { &mut spelling.path };
                if !part.is_empty() {
                    part.push_str("::");
                }
                part.push_str(word);
                rest = &rest[digits + length..];
            }
            None => {
                in_arguments |= rest.starts_with('I') || (!spelling.path.is_empty() && rest.starts_with('E'));
                rest = &rest[skipped(rest).max(digits)..];
            }
        }
    }
    spelling
}

/// Digits of the largest number of a reference, in base 36. A name made of nothing but their beginnings would take quadratic time.
const LONGEST: usize = 13;

/// Length of what stands at the start of a mangled name and is no word. The numbers of references (`S5_`, `T0_`) and of
/// literals (`Li256E`) are no lengths of words.
fn skipped(rest: &str) -> usize {
    let number = |from: usize| rest[from..].bytes().take(LONGEST).take_while(u8::is_ascii_alphanumeric).count();
    let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
    match rest.as_bytes() {
        [b'S' | b'T', b'0'..=b'9' | b'A'..=b'Z', ..] if rest[1 + number(1)..].starts_with('_') => 2 + number(1),
        [b'L', letter, b'0'..=b'9', ..] if letter.is_ascii_lowercase() => 2 + digits(2),
        _ => rest.chars().next().map_or(1, char::len_utf8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_their_arguments_are_told_apart_in_every_spelling() {
        let cases = [
            (
                "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, 2>(float*, cublasParams<int>)",
                "at::native::::catarraybatchedcopy",
                "float, 2>",
            ),
            (
                "void at::native::<unnamed>::softmax_warp<(int)4, T2>(T1 *)",
                "at::native::::softmax_warp",
                "unnamed>(int)4, t2>",
            ),
            (
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(P<int>)",
                "internal::gemvx::kernel",
                "int>",
            ),
            ("Cijk_Alik_Bljk_BBS_BH_MT64x64x64", "cijk_alik_bljk_bbs_bh_mt64x64x64", ""),
            ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdIfEEEEvv", "ck_tile::kentry", "rmsnorm2dfwd"),
            ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bEEvPT_", "aiter::add_rmsnorm_quant_kernel", ""),
            (
                "_ZN7cutlass13device_kernelINS5_17GroupProblemShapeILi256ELi3EEENS_4gemmEEEvv",
                "cutlass::device_kernel",
                "groupproblemshape::gemm",
            ),
            ("", "", ""),
        ];
        for (name, path, arguments) in cases {
            let spelling = Spelling::of(name);
            assert_eq!((spelling.path.as_str(), spelling.arguments.as_str()), (path, arguments), "{name}");
        }
    }
}
