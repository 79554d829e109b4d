//! Secrets on command lines, which are not written down.
//!
//! A run writes its command line into its manifest, its inputs, its reports and its logs, and people pass those on. What looks
//! like a password, a key or a token is therefore masked wherever a command line becomes text: by the name it is given under
//! (`name`), by the program that takes it (`program`), and by its own looks (`shape`). The command itself is started with the words
//! as they were given. A secret that looks like any other word and stands in no such place is not found; who has one keeps arguments
//! out of the run altogether.

mod name;
mod program;
mod shape;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering};

use name::Suspicion;
use regex::{Captures, Regex};

/// What stands for a secret.
pub const MASK: &str = "***";

/// What is written of the words of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WrittenArguments {
    /// All but secrets.
    Masked,
    /// All, as they are (`--keep-arguments`).
    All,
    /// The program alone (`--no-arguments`).
    None,
}

/// Set once at the start of the program: the command line is shown in errors, logs and documents alike, so that no single
/// settings struct reaches all of them.
static WRITTEN: AtomicU8 = AtomicU8::new(WrittenArguments::Masked as u8);

/// How deep command lines in words of command lines are looked into.
const DEEPEST: u32 = 3;

/// `name=` and `name: `, anywhere in a word; and `--name ` in a word that is a command line of its own.
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(r#"(?i)(?:^|[^a-z0-9_.-])(?P<name>-{0,2}[a-z][a-z0-9_.-]*)(?P<sign>["']?(?:\s*[:=]\s*|\s+))"#)
});

/// The value behind it.
static VALUE: LazyLock<Option<Regex>> =
    LazyLock::new(|| regex(r#"(?i)^(?:"[^"]*"|'[^']*'|(?:(?:bearer|basic|token)\s+)?[^\s"'&;,]+)"#));

/// What stands before the last `@` of an address, and after a colon in it.
static ADDRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| regex(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/\s:@]*)(?P<password>:[^/\s]*)?@"));
static BEARER: LazyLock<Option<Regex>> =
    LazyLock::new(|| regex(r"(?i)(?P<before>\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{8,}"));

/// `echo VALUE | docker login --password-stdin`.
static PIPED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(r#"(?P<before>\b(?:echo|printf)\s+(?:-\w+\s+)*)(?:"[^"]*"|'[^']*'|[^\s|]+)(?P<behind>\s*\|[^|]*-stdin\b)"#)
});

/// Says what is written from now on.
pub fn write_arguments(which: WrittenArguments) {
    WRITTEN.store(which as u8, Ordering::Relaxed);
}

/// Words of a command line as they are written down.
pub fn masked<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Vec<OsString> {
    let words: Vec<W> = words.into_iter().collect();
    match WRITTEN.load(Ordering::Relaxed) {
        which if which == WrittenArguments::All as u8 => words.iter().map(|word| word.as_ref().to_owned()).collect(),
        which if which == WrittenArguments::None as u8 => {
            let program = words.iter().take(1).map(|word| word.as_ref().to_owned());
            program.chain((words.len() > 1).then(|| MASK.into())).collect()
        }
        _ => masked_always(&words),
    }
}

/// Words without their secrets, whatever the user wants written.
pub fn masked_always<W: AsRef<OsStr>>(words: &[W]) -> Vec<OsString> {
    // Bytes that are no text are searched as what they look like, and stay where nothing was found.
    let texts: Vec<Cow<'_, str>> = words.iter().map(|word| word.as_ref().to_string_lossy()).collect();
    let masked = masked_texts(&texts, DEEPEST);
    let chosen = words.iter().zip(texts.iter().zip(masked));
    chosen
        .map(|(word, (text, masked))| if *text == masked { word.as_ref().to_owned() } else { masked.into() })
        .collect()
}

/// A text without keys and passwords that show by themselves: tokens of known services, and passwords in addresses. Sentences have
/// words such as `token` in front of others, so that names are no sign of a secret in them.
pub fn without_tokens(text: &str) -> Cow<'_, str> {
    match in_turn(text, &[(&ADDRESS, &masked_address)]) {
        Cow::Borrowed(text) => shape::masked(text),
        Cow::Owned(text) => shape::masked(&text).into_owned().into(),
    }
}

/// The value of a variable as it is written down.
pub(crate) fn masked_variable(name: &OsStr, value: &OsStr) -> OsString {
    let words = [OsString::from(format!("--{}", name.to_string_lossy())), value.to_owned()];
    masked(words).pop().unwrap_or_default()
}

/// What the word before says of the next one.
#[derive(Clone, Copy)]
enum Next {
    Word,
    /// It is the value of an option that a program takes its password by.
    OfProgram(program::Part),
    /// It is the value of an option of that name.
    Named(Suspicion),
}

fn masked_texts<T: AsRef<str>>(words: &[T], depth: u32) -> Vec<String> {
    let mut next = Next::Word;
    let mut before: Vec<&str> = Vec::new();
    let mut all = Vec::new();
    for word in words.iter().map(AsRef::as_ref) {
        let masked = match (std::mem::replace(&mut next, Next::Word), program::option(&before, word)) {
            (Next::OfProgram(part), _) => program::masked(part, word),
            (Next::Named(suspicion), _) if is_value(word, suspicion) => MASK.to_owned(),
            (_, Some((part, Some(value)))) => {
                format!("{}{}", &word[..word.len() - value.len()], program::masked(part, value))
            }
            (_, Some((part, None))) => {
                next = Next::OfProgram(part);
                word.to_owned()
            }
            _ => {
                before.push(program::name(word));
                // `--token= VALUE`, as shells leave it of an empty variable.
                let option = word.strip_suffix('=').unwrap_or(word);
                if is_option(option) {
                    next = Next::Named(name::suspicion(option));
                }
                masked_word(word, depth)
            }
        };
        all.push(masked);
    }
    all
}

/// Whether a word is an option and nothing more: `--api-key`.
fn is_option(text: &str) -> bool {
    let name = text.trim_start_matches('-');
    text.starts_with('-') && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Whether a word is the value of an option of that name. A password may begin with a dash; what looks like an option of many letters
/// is one.
fn is_value(text: &str, suspicion: Suspicion) -> bool {
    let is_long_option = text.strip_prefix("--").is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_=.".contains(c))
    });
    let is_letter = text.len() == 2 && text.starts_with('-');
    match suspicion {
        Suspicion::None => false,
        Suspicion::Likely => !text.starts_with('-') && !name::is_plain(text),
        Suspicion::Certain => !is_long_option && !is_letter,
    }
}

/// One word: an assignment, an address, a token, or a command line of its own.
fn masked_word(text: &str, depth: u32) -> String {
    // All that follows is the value, spaces and all.
    if let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_option(&format!("-{name}"))) {
        match name::suspicion(name) {
            Suspicion::Certain if !value.is_empty() => return format!("{name}={MASK}"),
            Suspicion::Likely if !name::is_plain(value) => return format!("{name}={MASK}"),
            _ => {}
        }
    }
    let mut masked = text.to_owned();
    if depth > 0 && text.contains(char::is_whitespace) {
        let inner = shlex::split(text).unwrap_or_default();
        for (word, without) in inner.iter().zip(masked_texts(&inner, depth - 1)) {
            if *word != without && !word.is_empty() {
                masked = masked.replace(word, &without);
            }
        }
    }
    let steps: [Step<'_>; 3] = [
        (&ADDRESS, &masked_address),
        (&BEARER, &|found| format!("{}{MASK}", &found["before"])),
        (&PIPED, &|found| format!("{}{MASK}{}", &found["before"], &found["behind"])),
    ];
    shape::masked(&masked_values(&in_turn(&masked, &steps))).into_owned()
}

/// A text without the values of names that are those of secrets.
fn masked_values(text: &str) -> String {
    let (Some(names), Some(values)) = (&*NAME, &*VALUE) else { return text.to_owned() };
    let (mut masked, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = names.captures_at(text, at) {
        let (name, sign) = (&found["name"], &found["sign"]);
        let from = found.get_match().end();
        let value = values.find(&text[from..]).map_or("", |value| value.as_str());
        let suspicion = name::suspicion(name);
        let is_secret = match sign.trim().is_empty() {
            // In a sentence or a program, `token x` says nothing; `--token x` does.
            true => name.starts_with('-') && is_value(value, suspicion),
            false => suspicion == Suspicion::Certain || (suspicion == Suspicion::Likely && !name::is_plain(value)),
        };
        if is_secret && !value.is_empty() {
            masked.push_str(&text[copied..from]);
            masked.push_str(MASK);
            copied = from + value.len();
            at = copied;
        } else {
            // What stands in front of the next name may be the sign of this one.
            at = from - sign.chars().next_back().map_or(0, char::len_utf8);
        }
    }
    masked + &text[copied..]
}

/// An address without its password. A name alone may be a token, except where everybody has the same, or where a machine is logged in
/// to by name.
fn masked_address(found: &Captures<'_>) -> String {
    let (scheme, user) = (&found["scheme"], &found["user"]);
    let is_web = scheme.starts_with("http") || scheme.contains("+http");
    match found.name("password") {
        Some(_) => format!("{scheme}{user}:{MASK}@"),
        None if is_web && !["", "git", "anonymous"].contains(&user) => format!("{scheme}{MASK}@"),
        None => found[0].to_owned(),
    }
}

/// A pattern, and what stands for what it finds.
type Step<'a> = (&'a LazyLock<Option<Regex>>, &'a dyn Fn(&Captures<'_>) -> String);

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
        for pattern in [&NAME, &VALUE, &ADDRESS, &BEARER, &PIPED] {
            assert!(pattern.is_some());
        }
    }

    /// Forms in which secrets were found in runs. `S3CRET` must not be left of any of them.
    const FORMS: &[&str] = &[
        "serve --api-key S3CRET --port 80",
        "serve --api-key=S3CRET",
        "serve --hf-token S3CRET",
        "serve --hf_token S3CRET",
        "serve --apiKey S3CRET",
        "run password=S3CRET db.password=S3CRET",
        "env HF_TOKEN=S3CRET python x.py",
        "env HFTOKEN=S3CRET python x.py",
        "env PGPASSWORD=S3CRET psql",
        "env DOCKER_PASS=S3CRET x",
        "env OPENAI_KEY=S3CRET x",
        "env AWS_ACCESS_KEY_ID=S3CRET x",
        "env AWS_SECRET_ACCESS_KEY=S3CRET x",
        "env DB_PW=S3CRET x",
        "env WANDB_API_KEY=S3CRET x",
        "ngrok --authtoken S3CRET",
        "ngrok --authtoken=S3CRET",
        "x --image-pull-secret S3CRET",
        "x --client-secret S3CRET",
        "x --passphrase 'a b S3CRET'",
        "x --password='a S3CRET'",
        "x --password 'a S3CRET'",
        "x --password -S3CRET",
        "x --token -S3CRET-x",
        "x -password S3CRET",
        "curl -u user:S3CRET https://host",
        "curl -uuser:S3CRET https://host",
        "curl --user user:S3CRET https://host",
        "curl --user=user:S3CRET https://host",
        "curl --proxy-user user:S3CRET https://host",
        "sshpass -p S3CRET ssh host",
        "sshpass -pS3CRET ssh host",
        "mysql -pS3CRET db",
        "redis-cli -a S3CRET",
        "docker login -p S3CRET",
        "sh -c 'sshpass -p S3CRET ssh host'",
        "sh -c 'curl -u user:S3CRET https://host'",
        "curl https://user:S3CRET@host/path",
        "curl https://S3CRET@host/path",
        "x --weights https://me:S3CRET@host",
        "x postgres://me:p@S3CRET@host/db",
        "x postgres://me:S3CRET@host/db",
        "x redis://:S3CRET@host",
        "pip install git+https://S3CRET@github.com/a/b",
        "curl 'https://host/path?sv=1&sig=S3CRET'",
        "curl 'https://host/path?X-Amz-Signature=S3CRET&x=1'",
        "curl 'https://host/path?api_key=S3CRET'",
        "curl -H 'Authorization: Bearer S3CRET-long-enough'",
        "curl -H 'Authorization: Token S3CRET'",
        "curl -H 'X-Api-Key: S3CRET'",
        "sh -c 'serve --api-key S3CRET --port 80; curl -u token=S3CRET'",
        "sh -c 'serve --password=\"a S3CRET\"'",
        "python -c 'login(token=\"S3CRET\")'",
        "login hf_S3CRETabcdefghijklmnop",
        "x AIzaS3CRETabcdefghijklmnopqrstuvwxyz0123",
        "x nvapi-S3CRETabcdefghijklmnopqrstuvwxyz",
        "x npm_S3CRETabcdefghijklmnopqrstuvwxyz012",
        "x glpat-S3CRETabcdefghijklm",
        "x xoxb-1234-S3CRETabcdefgh",
        "x --config gsk_S3CRETabcdefghijklmnop",
        "x --opaque q7S3CRETv8Lp0Zx3kMw9Rt5Bn2Hc6",
        "x 'DefaultEndpointsProtocol=https;AccountKey=S3CRET;EndpointSuffix=x'",
        "x 'Server=h;Password=S3CRET;'",
        "x '{\"api_key\": \"S3CRET\"}'",
        "wandb login S3CRET",
        "wandb login --relogin S3CRET",
        "x --pin=S3CRET",
        "x --token= S3CRET",
        "sh -c 'echo S3CRET | docker login -u me --password-stdin'",
        "sh -c 'printf \"S3CRET\" | helm registry login --password-stdin host'",
    ];

    #[test]
    fn secrets_are_masked_in_every_form_they_are_given_in() {
        for line in FORMS {
            let text = shown(line);
            assert!(!text.contains("S3CRET") && text.contains(MASK), "{line}: {text}");
        }
        assert_eq!(shown("serve --api-key S3CRET --port 80"), "serve --api-key *** --port 80");
        assert_eq!(shown("curl https://user:S3CRET@host/path"), "curl https://user:***@host/path");
        assert_eq!(shown("curl -uuser:S3CRET https://host"), "curl -uuser:*** https://host");
        assert_eq!(shown("sh -c 'sshpass -p S3CRET ssh host'"), "sh -c sshpass -p *** ssh host");
    }

    #[cfg(unix)]
    #[test]
    fn a_word_that_is_no_text_is_searched_too() {
        use std::os::unix::ffi::OsStrExt;
        let word = OsStr::from_bytes(b"--password=S\xe9CRET");
        assert_eq!(masked([word]), ["--password=***"]);
        let file = OsStr::from_bytes(b"trace-\xe9.json");
        assert_eq!(masked([file]), [file]);
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
            "ssh://git@host/repo --auth none --pass 3 --session auto",
            "vllm serve Qwen/Qwen2.5-VL-7B-Instruct-AWQ --dtype bfloat16 --revision 5f0a0c3f6b0f1b8f3c0d1f2e3a4b5c6d7e8f9a0b",
            "python run.py --config /data/DeepSeek-V3-0324/config.json --seed 12345 sort_key=name",
            "nsys profile -o r --capture-range=cudaProfilerApi -t cuda,nvtx",
            "docker run -p 8080:80 image",
            "python -c 'for key in keys: print(key, token)'",
            "sh -c 'echo start | tee log; wandb sync run'",
            "train --pin-memory --pin=true --wandb online",
        ] {
            assert_eq!(shown(line), shlex::split(line).unwrap().join(" "));
        }
    }
}
