//! Secrets on command lines, which are not written down.
//!
//! A run writes its command line into its manifest, its inputs, its reports and its logs, and people pass those on. What looks
//! like a password, a key or a token is therefore masked wherever a command line becomes text. The command itself is started
//! with the words as they were given.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::{Captures, Regex};

/// What stands for a secret.
pub const MASK: &str = "***";

/// Set once at the start of the program: the command line is shown in errors, logs and documents alike, so that no single
/// settings struct reaches all of them.
static KEEP: AtomicBool = AtomicBool::new(false);

/// Names of options, keys and headers whose value is a secret.
const NAMES: &str = "api[-_]?key|access[-_]?key(?:[-_]?id)?|secret|secret[-_]?(?:access[-_]?)?key|private[-_]?key|\
    password|passwd|passphrase|pwd|credentials?|authorization|x-api-key|auth|token";

/// Tokens of a text are no secrets: `--eos-token`, `pad_token=...`.
const TEXT_TOKENS: [&str; 12] =
    ["eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "image", "video", "per", "special"];

/// `--api-key VALUE`, where the name is one word and the value the next.
static OPTION: LazyLock<Option<Regex>> = LazyLock::new(|| regex(&format!("(?i)^--?(?:[a-z0-9]+[-_.])*(?:{NAMES})$")));

/// `name=value` and `name: value`, anywhere in a word; and `--name value` in a word that is a command line of its own.
static ASSIGNMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(&format!(
        r#"(?i)(?P<name>(?:^|[^a-z0-9_.-])-{{0,2}}(?P<around>(?:[a-z0-9]+[-_.])*)(?:{NAMES})["']?(?:\s*[:=]\s*|\s+))(?P<value>"[^"]*"|'[^']*'|(?:(?:bearer|basic|token)\s+)?[^\s"'&;,]+)"#
    ))
});

/// Passwords in addresses, and what stands behind `Bearer`.
static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| regex(r"(?P<before>://[^/\s:@]*:)[^@/\s]+@"));
static BEARER: LazyLock<Option<Regex>> =
    LazyLock::new(|| regex(r"(?i)(?P<before>\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{8,}"));

/// Tokens that say what they are: Hugging Face, OpenAI and Anthropic, GitHub, GitLab, Slack, AWS, JSON web tokens.
static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{12,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_.-]+)",
    )
});

/// Keeps secrets in what is written from now on (`--keep-arguments`).
pub fn keep_arguments() {
    KEEP.store(true, Ordering::Relaxed);
}

/// Words of a command line as they are written down.
pub fn masked<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Vec<OsString> {
    let keep = KEEP.load(Ordering::Relaxed);
    let mut is_value = false;
    let mask = |word: W| {
        let word = word.as_ref();
        // Bytes that are no text cannot be searched, and stay.
        let Some(text) = word.to_str().filter(|_| !keep) else { return word.to_owned() };
        let is_option = text.starts_with('-') && text.len() > 1;
        if std::mem::take(&mut is_value) && !is_option {
            return MASK.into();
        }
        is_value = matches(&OPTION, text) && !names_text_token(text);
        masked_word(text).into_owned().into()
    };
    words.into_iter().map(mask).collect()
}

/// A text without keys and passwords that show by themselves: tokens of known services, and passwords in addresses. Sentences have
/// words such as `token` in front of others, so that names are no sign of a secret in them.
pub fn without_tokens(text: &str) -> Cow<'_, str> {
    let steps: [Step<'_>; 2] =
        [(&ADDRESS, &|found| format!("{}{MASK}@", &found["before"])), (&TOKEN, &|_| MASK.to_owned())];
    in_turn(text, &steps)
}

/// The value of a variable as it is written down.
pub(crate) fn masked_variable(name: &OsStr, value: &OsStr) -> OsString {
    let words = [OsString::from(format!("--{}", name.to_string_lossy())), value.to_owned()];
    masked(words).pop().unwrap_or_default()
}

/// A pattern, and what stands for what it finds.
type Step<'a> = (&'a Option<Regex>, &'a dyn Fn(&Captures<'_>) -> String);

fn masked_word(text: &str) -> Cow<'_, str> {
    let assignment = |found: &Captures<'_>| {
        if names_text_token(&found["around"]) { found[0].to_owned() } else { format!("{}{MASK}", &found["name"]) }
    };
    let steps: [Step<'_>; 4] = [
        (&ADDRESS, &|found| format!("{}{MASK}@", &found["before"])),
        (&BEARER, &|found| format!("{}{MASK}", &found["before"])),
        (&TOKEN, &|_| MASK.to_owned()),
        (&ASSIGNMENT, &assignment),
    ];
    in_turn(text, &steps)
}

/// The text after every step.
fn in_turn<'t>(text: &'t str, steps: &[Step<'_>]) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(text);
    for (pattern, with) in steps {
        if let Some(pattern) = pattern.as_ref().filter(|pattern| pattern.is_match(&text)) {
            text = pattern.replace_all(&text, *with).into_owned().into();
        }
    }
    text
}

fn names_text_token(name: &str) -> bool {
    let mut parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.any(|part| TEXT_TOKENS.contains(&part.to_ascii_lowercase().as_str()))
}

fn matches(pattern: &Option<Regex>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// The patterns are ours and all compile, which a test makes sure of.
fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let words = shlex::split(line).unwrap();
        masked(&words).iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_patterns_compile() {
        for pattern in [&OPTION, &ASSIGNMENT, &ADDRESS, &BEARER, &TOKEN] {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn secrets_are_masked_in_every_form_they_are_given_in() {
        for line in [
            "serve --api-key S3CRET --port 80",
            "serve --api-key=S3CRET",
            "serve --hf-token S3CRET",
            "run password=S3CRET db.password=S3CRET",
            "env HF_TOKEN=S3CRET python x.py",
            "curl https://user:S3CRET@host/path",
            "curl -H 'Authorization: Bearer S3CRET-long-enough'",
            "curl -H 'X-Api-Key: S3CRET'",
            "sh -c 'serve --api-key S3CRET --port 80; curl -u token=S3CRET'",
            "python -c 'login(token=\"S3CRET\")'",
            "login hf_S3CRETabcdefghijklmnop",
            "--client-secret S3CRET",
        ] {
            let text = shown(line);
            assert!(!text.contains("S3CRET") && text.contains(MASK), "{line}: {text}");
        }
        assert_eq!(shown("serve --api-key S3CRET --port 80"), "serve --api-key *** --port 80");
        assert_eq!(shown("curl https://user:S3CRET@host/path"), "curl https://user:***@host/path");
    }

    #[test]
    fn sentences_keep_their_words_and_lose_their_keys() {
        let text = "per token 1.2 ms, basic arithmetic; hf_S3CRETabcdefghijklmnop at https://me:S3CRET@host";
        assert_eq!(without_tokens(text), "per token 1.2 ms, basic arithmetic; *** at https://me:***@host");
    }

    #[test]
    fn what_is_no_secret_stays() {
        for line in [
            "llm-perf profile infer.max_new_tokens=16 --device cuda:0",
            "python train.py --tokenizer gpt2 --max-tokens 5 --eos-token </s> pad_token=<pad> --keys 3",
            "sh -c 'echo a b; tokens=5 author=me'",
            "compare a b --fail-over 5% --token-budget 4",
            "https://host:8080/path@2",
        ] {
            assert_eq!(shown(line), shlex::split(line).unwrap().join(" "));
        }
    }
}
