//! The help as it is printed: verbs under headings, and text that wraps at the width of the terminal without leaving a lone word on
//! its last line.
//!
//! Clap breaks lines at spaces, so words that belong together are joined by a space that it does not know, which is put back before
//! anything is printed.

use clap::builder::styling::Styles;
use clap::{Arg, Command};

use super::HEADINGS;
use crate::screen;

/// Columns of the help at most, and where nothing says how many there are.
pub(crate) const WIDTH: usize = 100;

/// A space at which no line is broken.
const JOINT: char = '\u{a0}';

/// Longest list of values that stays on one line.
const TOGETHER: usize = 48;

/// The program with its help arranged. What it understands stays the same.
pub(crate) fn arranged(program: Command) -> Command {
    let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let list = verb_list(&program, width.or_else(columns).unwrap_or(WIDTH).min(WIDTH));
    let start = "{about-with-newline}\n{usage-heading} {usage}";
    let options = heading("Options");
    joined(program).help_template(format!("{start}\n\n{list}{options}\n{{options}}{{after-help}}"))
}

/// The text as it is printed.
pub(crate) fn printed(text: &str) -> String {
    text.replace(JOINT, " ")
}

fn verb_list(program: &Command, width: usize) -> String {
    const LEAD: usize = 15;
    let literal = *Styles::styled().get_literal();
    let row = |verb: &Command| {
        let (name, about) = (verb.get_name(), verb.get_about().map(ToString::to_string).unwrap_or_default());
        let about = screen::hanging(&about, LEAD, Some(width));
        format!("  {literal}{name}{literal:#}{}{about}\n", " ".repeat(LEAD - 2 - name.len()))
    };
    let group = |(title, names): &(&str, &[&str])| {
        let verbs = names.iter().filter_map(|name| program.find_subcommand(name)).filter(|verb| !verb.is_hide_set());
        format!("{}\n{}\n", heading(title), verbs.map(row).collect::<String>())
    };
    HEADINGS.iter().map(group).collect()
}

fn heading(title: &str) -> String {
    let style = *Styles::styled().get_header();
    format!("{style}{title}:{style:#}")
}

/// A command and its verbs with the words joined that belong together.
fn joined(command: Command) -> Command {
    let about = command.get_about().map(|about| join_last(&about.to_string()));
    let after = command.get_after_help().map(ToString::to_string);
    let after = after.map(|text| text.lines().map(join_last).collect::<Vec<_>>().join("\n"));
    let mut command = command.mut_args(joined_argument).mut_subcommands(joined);
    if let Some(about) = about {
        command = command.about(about);
    }
    match after {
        Some(after) => command.after_help(after),
        None => command,
    }
}

/// An argument with what clap would say of its values joined to its help.
fn joined_argument(argument: Arg) -> Arg {
    let Some(help) = argument.get_help().map(ToString::to_string) else { return argument };
    if !argument.get_action().takes_values() {
        return argument.help(join_last(&help));
    }
    let bracket = |title: &str, values: Vec<String>| {
        let text = format!("[{title}: {}]", values.join(", "));
        if text.len() <= TOGETHER { text.replace(' ', &JOINT.to_string()) } else { text }
    };
    let mut text = help;
    let defaults = argument.get_default_values();
    if !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let values = defaults.iter().map(|value| value.display().to_string()).collect();
        text = format!("{text} {}", bracket("default", values));
    }
    let values: Vec<String> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if !values.is_empty() && !argument.is_hide_possible_values_set() {
        text = format!("{text} {}", bracket("possible values", values));
    }
    argument.help(join_last(&text)).hide_default_value(true).hide_possible_values(true)
}

/// A line with its last two words joined, unless they are already.
fn join_last(line: &str) -> String {
    match line.rsplit_once(' ') {
        Some((before, last)) if !before.trim().is_empty() && !last.contains(JOINT) => format!("{before}{JOINT}{last}"),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::verb::command_line::CommandLine;

    fn help(verb: Option<&str>, width: usize) -> String {
        let mut program = arranged(CommandLine::command()).term_width(width);
        program.build();
        let shown = match verb {
            Some(name) => program.find_subcommand_mut(name).unwrap().render_help(),
            None => program.render_help(),
        };
        printed(&shown.to_string())
    }

    fn verbs() -> Vec<String> {
        CommandLine::command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect()
    }

    #[test]
    fn help_keeps_to_the_width_and_leaves_no_word_alone() {
        for width in [80, 100] {
            for verb in verbs() {
                let text = help(Some(&verb), width);
                let mut before = "";
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{verb} at {width}: {line}");
                    let indent = |line: &str| line.len() - line.trim_start().len();
                    // A full line above at the same depth, or one whose help starts there, goes on in this one.
                    let goes_on = before.len() + line.trim().len() >= width && indent(line) >= indent(before);
                    let is_alone = goes_on && line.split_whitespace().count() == 1 && line.trim().len() < 24;
                    assert!(!is_alone, "{verb} at {width}:\n{before}\n{line}");
                    before = line;
                }
            }
        }
    }

    #[test]
    fn every_example_fits_on_a_line_of_80_columns() {
        for verb in CommandLine::command().get_subcommands() {
            let text = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines().filter(|line| line.starts_with("  ") && line.contains("llm-perf ")) {
                assert!(line.len() <= 80, "{}: {line}", verb.get_name());
            }
        }
    }

    #[test]
    fn paragraphs_are_left_to_the_terminal_to_wrap() {
        for verb in CommandLine::command().get_subcommands() {
            let text = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                assert!(!(is_prose(pair[0]) && is_prose(pair[1])), "{}: {}", verb.get_name(), pair[0]);
            }
        }
    }

    #[test]
    fn every_verb_that_is_not_hidden_is_listed_once() {
        let list = help(None, WIDTH);
        for verb in CommandLine::command().get_subcommands() {
            let rows = list.lines().filter(|line| line.starts_with(&format!("  {} ", verb.get_name()))).count();
            assert_eq!(rows, usize::from(!verb.is_hide_set()), "{}", verb.get_name());
        }
    }
}
