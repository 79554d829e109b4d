//! Command lines as other tools take them, and how the same is written here.
//!
//! Looked for in what clap refuses and in overrides that are none. Only what is certainly meant is answered; everything else keeps its
//! own error.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command};
use types::UserError;

/// Verbs that measure a command after `--`.
const TAKING_COMMANDS: [&str; 3] = ["profile", "deep", "regions"];

/// Verbs that run a model; what it is fed is `infer`, not `workload`.
const RUNNING_MODELS: [&str; 4] = ["profile", "deep", "regions", "workload"];

/// Verbs that take overrides of a modelled workload.
const MODELLING: [&str; 2] = ["analyze", "import"];

/// Options that people try, and the keys that stand for them: where a model is only modelled, and where it is run.
const KEYS: [(&[&str], Option<&str>, Option<&str>); 17] = [
    (&["batch", "batch-size", "bs"], Some("workload.batch"), Some("infer.batch")),
    (
        &["seq-len", "seq-length", "seqlen", "sequence-length", "prompt-len", "prompt-tokens", "input-len", "isl"],
        Some("workload.seq_len"),
        Some("infer.seq_len"),
    ),
    (
        &["max-new-tokens", "max-tokens", "new-tokens", "output-len", "osl", "gen-len"],
        Some("workload.max_new_tokens"),
        Some("infer.max_new_tokens"),
    ),
    (&["decode-steps"], Some("workload.decode_steps"), Some("infer.max_new_tokens")),
    (&["dtype", "torch-dtype", "precision"], Some("workload.dtype"), Some("model.dtype")),
    (&["attention", "attn-implementation"], Some("workload.attention"), Some("infer.attention")),
    (&["kv-dtype", "kv-cache-dtype"], Some("workload.quantisation.kv"), None),
    (&["quantization", "quantisation", "weight-dtype"], Some("workload.quantisation.weights"), None),
    (&["tp", "tensor-parallel", "tensor-parallel-size"], Some("workload.parallel.tensor"), None),
    (&["pp", "pipeline-parallel", "pipeline-parallel-size"], Some("workload.parallel.pipeline"), None),
    (&["ep", "expert-parallel", "expert-parallel-size"], Some("workload.parallel.expert"), None),
    (&["prompt"], None, Some("infer.prompt")),
    (&["temperature"], None, Some("infer.temperature")),
    (&["top-p"], None, Some("infer.top_p")),
    (&["seed"], None, Some("model.seed")),
    (&["repeats", "repeat", "iterations", "iters", "num-runs"], None, Some("dataset.sampling.repeats")),
    (&["warmup-rounds", "warmups", "num-warmup"], None, Some("dataset.sampling.warmup_rounds")),
];

/// Options that people try, and the ones that stand for them.
const OPTIONS: [(&[&str], &str); 3] =
    [(&["-o", "--output", "--output-dir", "--out-dir"], "out"), (&["-m"], "model"), (&["--gpu"], "hardware")];

/// What the words after a verb hold that clap or the configuration would only call unknown.
enum Found {
    /// An option that the verb does not have, and its value.
    Option(String, Option<String>),
    /// The place of a word that is neither an option nor an override.
    Word(usize),
}

/// The habit behind a command line, explained; absent where there is none.
pub(crate) fn explain(program: &Command, arguments: &[OsString]) -> Option<UserError> {
    let at = positional(program, program, arguments, 1)?;
    let verb = program.find_subcommand(arguments[at].to_str()?)?;
    let takes_overrides = RUNNING_MODELS.contains(&verb.get_name()) || MODELLING.contains(&verb.get_name());
    if !takes_overrides {
        return None;
    }
    match find(program, verb, arguments, at + 1)? {
        Found::Option(option, value) => of_option(verb, arguments, &option, value.as_deref()),
        Found::Word(word) => of_word(verb.get_name(), arguments, word),
    }
}

/// The first word from `start` that is no option and no value of one.
fn positional(program: &Command, verb: &Command, arguments: &[OsString], start: usize) -> Option<usize> {
    let mut at = start;
    while let Some(word) = arguments.get(at) {
        let word = word.to_string_lossy();
        if !is_option(&word) {
            return Some(at);
        }
        at += 1 + usize::from(defined(program, verb, &word).is_some_and(|option| takes_next(option, &word)));
    }
    None
}

fn find(program: &Command, verb: &Command, arguments: &[OsString], start: usize) -> Option<Found> {
    let mut at = start;
    while let Some(word) = arguments.get(at).filter(|word| *word != "--") {
        let word = word.to_string_lossy();
        if !is_option(&word) {
            let is_override = word.contains('=') || word.starts_with('~');
            // Files stand where overrides do.
            if !is_override && verb.get_name() != "import" {
                return Some(Found::Word(at));
            }
            at += 1;
            continue;
        }
        let Some(option) = defined(program, verb, &word) else {
            let (name, inline) = word.split_once('=').map_or((&*word, None), |(name, value)| (name, Some(value)));
            let next = || arguments.get(at + 1)?.to_str().filter(|next| !is_option(next) && !next.contains('='));
            let value = inline.or_else(next).map(str::to_owned);
            return Some(Found::Option(name.to_owned(), value));
        };
        at += 1 + usize::from(takes_next(option, &word));
    }
    None
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// The definition of an option.
fn defined<'a>(program: &'a Command, verb: &'a Command, word: &str) -> Option<&'a Arg> {
    let mut all = verb.get_arguments().chain(program.get_arguments());
    match word.strip_prefix("--") {
        Some(long) => {
            let name = long.split('=').next().unwrap_or_default();
            all.find(|option| option.get_long() == Some(name))
        }
        None => all.find(|option| option.get_short() == word.chars().nth(1)),
    }
}

/// Whether the word after an option is its value.
fn takes_next(option: &Arg, word: &str) -> bool {
    option.get_action().takes_values() && !word.contains('=')
}

/// Points from an option to the key or the option that stands for it.
fn of_option(verb: &Command, arguments: &[OsString], option: &str, value: Option<&str>) -> Option<UserError> {
    let unknown = UserError::usage(format!("unknown option `{option}`"));
    let other = OPTIONS.iter().find(|(names, _)| names.contains(&option)).map(|(_, long)| *long);
    if let Some(long) = other.filter(|long| verb.get_arguments().any(|known| known.get_long() == Some(*long))) {
        return Some(unknown.hint(format!("use `--{long} {}`", value.unwrap_or("VALUE"))));
    }
    let name = option.strip_prefix("--")?.replace('_', "-");
    let (_, modelled, run) = KEYS.iter().find(|(names, ..)| names.contains(&name.as_str()))?;
    let runs_model = RUNNING_MODELS.contains(&verb.get_name()) && !arguments.iter().any(|word| word == "--");
    let key = if runs_model { run } else { modelled }.as_ref()?;
    // One token comes out of prefill, so decoding takes a step less than there are new tokens.
    let is_steps = name == "decode-steps" && *key == "infer.max_new_tokens";
    let steps = value.filter(|_| is_steps).and_then(|value| value.parse::<u64>().ok());
    let value = steps.map_or_else(|| value.unwrap_or("VALUE").to_owned(), |steps| steps.saturating_add(1).to_string());
    let setting = flow::command_line([format!("{key}={value}")]);
    Some(unknown.hint(format!("use the override `{setting}`; `llm-perf config` lists all keys")))
}

/// Points from a word that is no override to the option it belongs to, or to the `--` that is missing before a command.
fn of_word(verb: &str, arguments: &[OsString], at: usize) -> Option<UserError> {
    let word = arguments[at].as_os_str();
    let line = |words: &[&OsStr]| {
        let before = arguments[1..at].iter().map(OsString::as_os_str);
        let after = arguments[at + 1..].iter().map(OsString::as_os_str);
        let all = [OsStr::new("llm-perf")].into_iter().chain(before).chain(words.iter().copied()).chain(after);
        flow::command_line(all)
    };
    let unexpected = |what: &str| UserError::usage(format!("unexpected argument `{}`: {what}", word.display()));
    if is_model(word) {
        return Some(
            unexpected("a model goes after --model").hint(format!("use `{}`", line(&["--model".as_ref(), word]))),
        );
    }
    let has_command = arguments.iter().any(|word| word == "--");
    if !TAKING_COMMANDS.contains(&verb) || has_command || is_key(word) {
        return None;
    }
    // A script is run by its interpreter.
    let is_script = Path::new(word).extension().is_some_and(|ending| ending == "py");
    let words: &[&OsStr] = if is_script { &["--".as_ref(), "python".as_ref(), word] } else { &["--".as_ref(), word] };
    Some(unexpected("a command goes after `--`").hint(format!("put `--` before the command: `{}`", line(words))))
}

/// Whether a word certainly names a model: a built-in one, or a file or folder that holds one.
fn is_model(word: &OsStr) -> bool {
    let path = Path::new(word);
    let is_preset = flow::model::PRESETS.iter().any(|preset| word == preset.name);
    let is_file = path.extension().is_some_and(|ending| ending == "gguf" || ending == "json");
    is_preset || is_file || path.join("config.json").is_file()
}

/// Whether a word starts as a key of the configuration, whose value is missing.
fn is_key(word: &OsStr) -> bool {
    const ROOTS: [&str; 14] = [
        "model",
        "infer",
        "dataset",
        "pipeline",
        "profiling",
        "workload",
        "artifacts",
        "run",
        "runner",
        "hydra",
        "engine",
        "device",
        "hardware",
        "inputs",
    ];
    let Some(text) = word.to_str() else { return false };
    let root = text.trim_start_matches('+').split(['.', '/', '@']).next().unwrap_or_default();
    text.starts_with('+') || (ROOTS.contains(&root) && !Path::new(word).exists())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use config::{Composer, OverrideSource, Overrides};

    use super::*;
    use crate::verb::command_line::CommandLine;

    fn explained(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut program = CommandLine::command();
        program.build();
        explain(&program, &words).map(|error| format!("{}\n{}", error.message, error.hints.join("\n")))
    }

    #[test]
    fn a_command_without_dashes_is_shown_with_them() {
        for (typed, shown) in [
            ("llm-perf profile python train.py", "llm-perf profile -- python train.py"),
            ("llm-perf profile --runs 3 python train.py --lr 1", "llm-perf profile --runs 3 -- python train.py --lr 1"),
            ("llm-perf -q deep --mode light ./engine -x", "llm-perf -q deep --mode light -- ./engine -x"),
            ("llm-perf regions --nvtx-include=A python3 a.py", "llm-perf regions --nvtx-include=A -- python3 a.py"),
            ("llm-perf --config-dir c profile train.py", "llm-perf --config-dir c profile -- python train.py"),
        ] {
            let explained = explained(typed).unwrap();
            assert!(explained.ends_with(&format!("put `--` before the command: `{shown}`")), "{typed}: {explained}");
        }
    }

    #[test]
    fn a_model_without_its_option_is_shown_with_it() {
        let shown = explained("llm-perf analyze llama-3-8b --hardware h200").unwrap();
        assert!(shown.ends_with("use `llm-perf analyze --model llama-3-8b --hardware h200`"), "{shown}");
        assert!(explained("llm-perf profile model.gguf").unwrap().contains("--model model.gguf"));
        assert!(explained("llm-perf analyze none.json").unwrap().contains("--model none.json"));
    }

    #[test]
    fn what_is_no_habit_keeps_its_own_error() {
        for line in [
            "llm-perf profile",
            "llm-perf profile infer.batch",
            "llm-perf profile infer.batch=2 -- python a.py",
            "llm-perf profile --nonsense 3",
            "llm-perf analyze nonsense",
            "llm-perf import trace.json",
            "llm-perf models --batch 8",
            "llm-perf nonsense",
            "llm-perf",
        ] {
            assert_eq!(explained(line), None, "{line}");
        }
    }

    #[test]
    fn options_of_other_tools_lead_to_keys() {
        for (typed, shown) in [
            ("llm-perf analyze --batch 8", "`workload.batch=8`"),
            ("llm-perf analyze --batch-size=8", "`workload.batch=8`"),
            ("llm-perf analyze --max_new_tokens 16", "`workload.max_new_tokens=16`"),
            ("llm-perf import t.json --seq-len 4096", "`workload.seq_len=4096`"),
            ("llm-perf analyze --dtype", "`workload.dtype=VALUE`"),
            ("llm-perf profile --batch 8", "`infer.batch=8`"),
            ("llm-perf profile --decode-steps 15", "`infer.max_new_tokens=16`"),
            ("llm-perf profile --model llama-3-8b --batch 8 -- python a.py", "`workload.batch=8`"),
            ("llm-perf analyze -o results", "`--out results`"),
            ("llm-perf analyze --gpu h200", "`--hardware h200`"),
        ] {
            let explained = explained(typed).unwrap_or_default();
            assert!(explained.contains(shown), "{typed}: {explained}");
        }
    }

    #[test]
    fn every_key_that_is_offered_exists() {
        let composer = Composer::new(None).unwrap();
        let mut decoder = Overrides::default();
        decoder.mount("model/decoder/infer", "infer", "decoder.default", OverrideSource::Verb);
        let config = composer.compose(&decoder).unwrap();
        let keys = config.keys();
        for key in KEYS.iter().flat_map(|(_, modelled, run)| [modelled, run]).flatten() {
            assert!(keys.iter().any(|known| known == key), "{key}");
        }
    }

    #[test]
    fn what_starts_as_a_key_is_known_by_the_roots_of_the_configuration() {
        let config = Composer::new(None).unwrap().compose(&Overrides::default()).unwrap();
        for key in config.keys() {
            let root = key.split('.').next().unwrap().to_owned();
            assert!(is_key(OsStr::new(&root)), "{root}");
        }
    }
}
