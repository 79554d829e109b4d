//! Programs that take a password by a letter that means something else everywhere else.

/// Where in a value the secret stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// What follows the first colon: `user:password`.
    BehindColon,
    /// What follows the first percent sign: `user%password`.
    BehindPercent,
}

/// Program, with its verb where the option means something else without it; option, empty where it is a word of its own; and where in its value the secret stands.
const OPTIONS: &[(&str, &str, Part)] = &[
    ("aria2c", "--http-passwd", Part::Whole),
    ("az login", "-p", Part::Whole),
    ("cadaver", "-p", Part::Whole),
    ("curl", "--proxy-user", Part::BehindColon),
    ("curl", "--user", Part::BehindColon),
    ("curl", "-U", Part::BehindColon),
    ("curl", "-u", Part::BehindColon),
    ("docker login", "-p", Part::Whole),
    ("helm login", "-p", Part::Whole),
    ("http", "-a", Part::BehindColon),
    ("https", "-a", Part::BehindColon),
    ("ldapsearch", "-w", Part::Whole),
    ("lftp", "-u", Part::Whole),
    ("mariadb", "-p", Part::Whole),
    ("mongo", "-p", Part::Whole),
    ("mongosh", "-p", Part::Whole),
    ("mysql", "-p", Part::Whole),
    ("mysqldump", "-p", Part::Whole),
    ("oc login", "-p", Part::Whole),
    ("openssl", "-k", Part::Whole),
    ("openssl", "-K", Part::Whole),
    ("openssl", "-pass", Part::Whole),
    ("openssl", "-passin", Part::Whole),
    ("openssl", "-passout", Part::Whole),
    ("podman login", "-p", Part::Whole),
    ("redis-cli", "-a", Part::Whole),
    ("smbclient", "-U", Part::BehindPercent),
    ("sqlcmd", "-P", Part::Whole),
    ("sshpass", "-p", Part::Whole),
    ("twine", "-p", Part::Whole),
    ("unzip", "-P", Part::Whole),
    ("wandb login", "", Part::Whole),
    ("wget", "--http-passwd", Part::Whole),
    ("zip", "-P", Part::Whole),
];

/// The option that a word is, of a program (and its verb) among the words before it; with the value that is joined to it, `-uuser:password`.
pub(super) fn option<'w>(before: &[&str], word: &'w str) -> Option<(Part, Option<&'w str>)> {
    let of_program = OPTIONS.iter().filter(|(program, ..)| program.split(' ').all(|word| before.contains(&word)));
    let found = of_program.filter_map(|(_, option, part)| {
        if option.is_empty() {
            return (!word.starts_with('-')).then_some((0, *part, Some(word)));
        }
        let rest = word.strip_prefix(option)?;
        let is_letter = option.len() == 2;
        let value = match rest.strip_prefix('=') {
            Some(value) if !is_letter => Some(value),
            _ if rest.is_empty() => None,
            _ if is_letter => Some(rest),
            _ => return None,
        };
        Some((option.len(), *part, value))
    });
    found.max_by_key(|(length, ..)| *length).map(|(_, part, value)| (part, value))
}

/// The value without its secret.
pub(super) fn masked(part: Part, value: &str) -> String {
    let kept = match part {
        Part::Whole => "",
        Part::BehindColon => value.split_inclusive(':').next().unwrap_or_default(),
        Part::BehindPercent => value.split_inclusive('%').next().unwrap_or_default(),
    };
    // A user without a password.
    if kept == value && part != Part::Whole { value.to_owned() } else { format!("{kept}{}", super::MASK) }
}

/// The name of a program that a word may be.
pub(super) fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
