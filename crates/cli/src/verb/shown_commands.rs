//! Commands that the documentation and the help show, read as the program reads them: the verb, every option, every value that has a
//! fixed form, and every override composed with the built-in files. What they do is tested elsewhere.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use config::{Composer, OverrideSource, Overrides};

use super::command_line::{CommandLine, Refusal, parse};

/// Verbs that take overrides.
const WITH_OVERRIDES: [&str; 7] = ["analyze", "config", "deep", "import", "profile", "regions", "workload"];

/// The README and every page beneath `docs`.
fn pages() -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut open = vec![root.join("docs")];
    let mut files = vec![root.join("README.md")];
    while let Some(folder) = open.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path)
            } else {
                files.extend(Some(path).filter(|path| path.extension().is_some_and(|ending| ending == "md")))
            }
        }
    }
    files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// Commands in blocks and in spans of the text. Blocks with a prompt are run, and compared with what they show, by `tests/guide.rs`.
fn commands(text: &str) -> Vec<String> {
    let (mut found, mut prose, mut in_fence) = (Vec::new(), String::new(), false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if in_fence || line.starts_with("    ") {
            let mut command = line.trim_start().to_owned();
            while let Some(whole) = command.strip_suffix('\\') {
                command = format!("{whole}{}", lines.next().unwrap_or_default().trim_start());
            }
            found.push(command);
        } else {
            prose = prose + line + "\n";
        }
    }
    found.extend(prose.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")));
    found.retain(|command| command.starts_with("llm-perf "));
    found
}

/// The words of a command as a shell splits them, up to a comment, a pipe, or what explains it behind a gap.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for (at, c) in command.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            None if c == ' ' => {
                words.extend(word.take());
                if command[at..].starts_with("  ") {
                    break;
                }
            }
            None if matches!(c, '|' | ';' | '&' | '>' | '#') => break,
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Whether a word is an override, and not the value of the option before it.
fn is_override(before: &str, word: &str) -> bool {
    let key = word.split('=').next().unwrap_or_default().trim_start_matches('+');
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '@' | '-');
    !before.starts_with("--")
        && word.contains('=')
        && key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.chars().all(is_key)
}

/// Reads a command; says what is wrong with it, or how many overrides it has.
fn check(composer: &Composer, command: &str) -> Result<usize, String> {
    let words = words(command);
    if let [_, verb] = &words[..] {
        // In a sentence, a verb alone is its name.
        let is_known = CommandLine::command().find_subcommand(verb).is_some();
        return if is_known || verb.starts_with('-') { Ok(0) } else { Err(format!("there is no verb {verb}")) };
    }
    let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
    match parse(&arguments) {
        Ok(_) => {}
        Err(Refusal::Clap(shown)) if shown.exit_code() == 0 => {}
        Err(error) => return Err(error.to_string()),
    }
    // Files of a user's own may have any option; and what has an equals sign may be a folder.
    if words.iter().any(|word| word == "--config-dir")
        || !words.iter().any(|word| WITH_OVERRIDES.contains(&word.as_str()))
    {
        return Ok(0);
    }
    let own: Vec<&str> = words.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    let overrides: Vec<&str> =
        own.windows(2).filter(|pair| is_override(pair[0], pair[1])).map(|pair| pair[1]).collect();
    let typed = Overrides::typed(&overrides).map_err(|error| error.to_string())?;
    composes(composer, &typed).map(|()| overrides.len())
}

/// Whether overrides fit the built-in files with the settings that some model runs with: which ones, a flag or the model says.
fn composes(composer: &Composer, typed: &Overrides) -> Result<(), String> {
    let groups = composer.groups().into_iter().filter(|group| group.name.ends_with("/infer"));
    let mounted = groups.map(|group| {
        let mut overrides = Overrides::default();
        overrides.mount(&group.name, "infer", &group.options[0].0, OverrideSource::Verb);
        overrides
    });
    let mut problem = None;
    for mut overrides in [Overrides::default()].into_iter().chain(mounted) {
        overrides.append(typed);
        match composer.compose(&overrides) {
            Ok(_) => return Ok(()),
            Err(error) => problem = problem.or(Some(error.to_string())),
        }
    }
    Err(problem.unwrap_or_default())
}

#[test]
fn every_command_of_the_documentation_is_understood() {
    let composer = Composer::new(None).unwrap();
    let (mut commands_checked, mut overrides_checked, mut problems) = (0, 0, Vec::new());
    for (page, text) in pages() {
        // A synopsis has places to fill in, and `VERB` is one that parses as no verb.
        let is_whole = |command: &String| !command.contains("...") && !command.contains(" VERB");
        for command in commands(&text).into_iter().filter(is_whole) {
            commands_checked += 1;
            match check(&composer, &command) {
                Ok(overrides) => overrides_checked += overrides,
                Err(problem) => problems.push(format!("{}: {command}\n{problem}", page.display())),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    assert!(commands_checked > 150 && overrides_checked > 40, "{commands_checked} and {overrides_checked}");
}

#[test]
fn every_example_of_the_help_is_understood() {
    let composer = Composer::new(None).unwrap();
    let mut problems = Vec::new();
    for verb in CommandLine::command().get_subcommands() {
        let examples = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> =
            examples.lines().map(str::trim).filter(|line| line.starts_with("llm-perf ")).collect();
        assert!(!examples.is_empty(), "{}", verb.get_name());
        let wrong = |example: &&str| check(&composer, example).err().map(|problem| format!("{example}\n{problem}"));
        problems.extend(examples.iter().filter_map(wrong));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn words_end_where_a_shell_ends_them() {
    assert_eq!(words("llm-perf a 'b c'=\"d e\"  explained"), ["llm-perf", "a", "b c=d e"]);
    assert_eq!(words("llm-perf a --b | less"), ["llm-perf", "a", "--b"]);
    assert_eq!(words("llm-perf a ''"), ["llm-perf", "a", ""]);
}
