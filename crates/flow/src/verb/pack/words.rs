//! Command lines: which words of one tell something of the user.

use super::scrubber::{Kind, Scrubber};

/// Values of our own options that everybody may see.
const PLAIN: [&str; 12] =
    ["true", "false", "null", "auto", "native", "torch", "nsys", "ncu", "inject", "both", "cpu", "cuda"];

/// The words of our own command line: options, keys, numbers and `known` names stay, and what belongs to the user goes.
pub(super) fn redacted_command(words: &[String], known: &[&str], scrubber: &Scrubber) -> Vec<String> {
    // A run that kept its arguments, or was made before a form of secrets was known, has them still.
    let words =
        &collect::masked_always(words).iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()[..];
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let own = words[..end].iter().enumerate().map(|(place, word)| match place {
        0 => program(word),
        // The verb.
        1 if word.chars().all(|c| c.is_ascii_lowercase()) => word.clone(),
        _ => one_word(word, known, scrubber),
    });
    own.chain(words[end..].iter().map(|word| one_word(word, &[], scrubber))).collect()
}

/// Our own program without its folder.
fn program(word: &str) -> String {
    word.rsplit('/').next().unwrap_or(word).to_owned()
}

/// One word: the name of an option or of a key stays, its value does not.
pub(super) fn one_word(word: &str, known: &[&str], scrubber: &Scrubber) -> String {
    if word.is_empty() || word == "--" || known.contains(&word) || is_plain(word) {
        return word.to_owned();
    }
    let named = word.split_once('=').filter(|(name, _)| is_name(name.trim_start_matches('-').trim_start_matches('+')));
    match named {
        Some((name, value)) => format!("{name}={}", one_word(value, known, scrubber)),
        None if word.starts_with('-') && is_option(word) => word.to_owned(),
        None => scrubber.stand_in(Kind::Word, word),
    }
}

/// A word that is worth looking for elsewhere: a path, a file or a text. Words such as `decode` or `cuda:0` mean other things there.
pub(super) fn is_telling(word: &str) -> bool {
    let is_file = || {
        let (stem, ending) = word.rsplit_once('.').unwrap_or_default();
        let is_letter = |c: char| c.is_ascii_alphabetic();
        !stem.is_empty() && ending.starts_with(is_letter) && ending.chars().all(|c| c.is_ascii_alphanumeric())
    };
    word.len() >= 5 && (word.contains(['/', ' ', '\n', '@']) || is_file())
}

fn is_plain(word: &str) -> bool {
    word.parse::<f64>().is_ok()
        || PLAIN.contains(&word)
        || ["cuda:", "gpu:"].iter().any(|kind| word.strip_prefix(kind).is_some_and(|n| n.parse::<u32>().is_ok()))
}

/// What options are called. Anything may stand behind a dash, a password too.
fn is_option(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    let is_usual = word.len() == 2 || (word.starts_with("--") && !name.contains(|c: char| c.is_ascii_uppercase()));
    is_usual && is_name(name) && collect::without_tokens(name) == name
}

/// What an option or a key of a configuration is called.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '/');
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.len() < 60 && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let scrubber = Scrubber::new([0; 32], Vec::new());
        let words = redacted_command(&words, &["deepseek-ocr"], &scrubber);
        let short = |word: &String| {
            word.split("redacted-word-")
                .next()
                .map(|before| if before.len() < word.len() { format!("{before}?") } else { word.clone() })
        };
        words.iter().filter_map(short).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_stay_and_values_go() {
        assert_eq!(
            shown(
                "/opt/x/llm-perf profile --model deepseek-ocr --inputs scans infer.batch=4 infer.prompt=Hello --out r"
            ),
            "llm-perf profile --model deepseek-ocr --inputs ? infer.batch=4 infer.prompt=? --out ?"
        );
        assert_eq!(
            shown("llm-perf profile -- python3 train.py --project acme --steps 8 x=y 7 --api-key=S3CRET -c"),
            "llm-perf profile -- ? ? --project ? --steps 8 x=? 7 --api-key=? -c"
        );
        assert_eq!(
            shown("llm-perf profile -- x --password -S3CRET -S3CRET --hf_S3CRETabcdefghijklmnop"),
            "llm-perf profile -- ? --password ? ? ?"
        );
    }

    #[test]
    fn only_words_that_mean_nothing_else_are_looked_for_elsewhere() {
        for (word, telling) in [
            ("train.py", true),
            ("a/b/c", true),
            ("echo hello", true),
            ("decode", false),
            ("cuda:0", false),
            ("1.5.2", false),
        ] {
            assert_eq!(is_telling(word), telling, "{word}");
        }
    }
}
