//! Names of options, variables, keys and headers whose value is a secret.

/// Endings of the last word of a name that leave no doubt, with or without something before them: `PGPASSWORD`, `HFTOKEN`.
const ENDINGS: &str = include_str!("endings.txt");

/// Last words that are a secret where the word before them names nothing harmless, and the value is no number or switch.
const WORDS: &[&str] = &[
    "pass",
    "pw",
    "key",
    "auth",
    "pat",
    "sig",
    "cookie",
    "dsn",
    "creds",
    "cred",
    "otp",
    "passwords",
    "pin",
    "session",
];

/// Words before `token`, `key` and `pass` with which they are no secret: tokens of a text, keys of a table, passes of a loop.
const HARMLESS: &str = include_str!("harmless.txt");

/// What may follow the word that names a secret: `AWS_ACCESS_KEY_ID`, `api_key_1`.
const BEHIND: &[&str] = &["id", "value", "header", "string", "b64", "base64"];

/// How sure a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Suspicion {
    /// Its value is none.
    None,
    /// Its value is one unless it is a number or a switch.
    Likely,
    /// Its value is one.
    Certain,
}

/// What a name says of its value.
pub(super) fn suspicion(name: &str) -> Suspicion {
    let mut words = words(name);
    let is_behind = |word: &String| BEHIND.contains(&word.as_str()) || word.bytes().all(|byte| byte.is_ascii_digit());
    if words.len() > 1 && words.last().is_some_and(is_behind) {
        // `pad_token_id` is a number, `access_key_id` is not.
        words.pop();
    }
    let Some(last) = words.pop() else { return Suspicion::None };
    let is_harmless = words.last().is_some_and(|word| HARMLESS.lines().any(|harmless| harmless == word));
    let ends_with_secret = || ENDINGS.lines().any(|ending| last.ends_with(ending));
    // `--key` alone is mostly a file; of `pass`, `auth` and their kind the file is the exception.
    let is_word = || WORDS.contains(&last.as_str()) && (last != "key" || !words.is_empty());
    match (is_harmless, ends_with_secret(), is_word()) {
        (true, ..) | (false, false, false) => Suspicion::None,
        (false, true, _) => Suspicion::Certain,
        (false, false, true) => Suspicion::Likely,
    }
}

/// Whether a value is nothing that anybody hides: a short number, a switch, nothing.
pub(super) fn is_plain(value: &str) -> bool {
    const SWITCHES: &[&str] =
        &["", "true", "false", "yes", "no", "on", "off", "none", "null", "auto", "basic", "bearer"];
    let is_short_number = value.len() < 4 && value.bytes().all(|byte| byte.is_ascii_digit());
    is_short_number || SWITCHES.contains(&value.to_ascii_lowercase().as_str())
}

/// Words of a name in small letters: `X-Amz-Signature`, `HF_TOKEN` and `accessToken` have two or three.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in name.chars() {
        let starts = !before.is_alphanumeric() || (before.is_lowercase() && letter.is_uppercase());
        if letter.is_alphanumeric() {
            if starts || words.is_empty() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
        }
        before = letter;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_however_they_are_written() {
        for name in [
            "--api-key",
            "API_KEY",
            "apiKey",
            "PGPASSWORD",
            "HFTOKEN",
            "--authtoken",
            "DOCKER_PASS",
            "OPENAI_KEY",
            "--image-pull-secret",
            "X-Amz-Signature",
            "sig",
            "AWS_ACCESS_KEY_ID",
            "hf-token",
            "db.password",
            "client_secret",
            "--auth",
            "X-Api-Key",
            "Authorization",
            "AccountKey",
            "api_key_2",
            "SharedAccessKey",
        ] {
            assert!(suspicion(name) > Suspicion::None, "{name}");
        }
    }

    #[test]
    fn tokens_of_a_text_keys_of_a_table_and_passes_of_a_loop_are_no_secrets() {
        for name in [
            "--eos-token",
            "pad_token",
            "pad_token_id",
            "--tokenizer",
            "max_new_tokens",
            "--keys",
            "--key",
            "sort_key",
            "primary-key",
            "forward_pass",
            "--pass-limit",
            "author",
            "tokens",
            "--token-budget",
            "num_key_value_heads",
            "bypass",
            "monkey",
            "keyboard",
            "",
            "--image-token",
            "kv_cache_key",
        ] {
            assert_eq!(suspicion(name), Suspicion::None, "{name}");
        }
    }
}
