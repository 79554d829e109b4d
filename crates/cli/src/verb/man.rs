//! `llm-perf man`: the manual pages, for those who package the program.

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::Man;
use types::{Exit, UserError};

use super::command_line::CommandLine;
use crate::context::Context;

/// Write the manual pages to a folder
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Arguments {
    /// Folder to write; created if missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let folder = &arguments.folder;
    let failed = |path: &Path, error: std::io::Error| {
        UserError::failed(format!("cannot write {}", path.display())).because(error.to_string())
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    // Built, so that options of the program itself stand on the page of every verb too.
    let mut program = CommandLine::command();
    program.build();
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    for page in [&program].into_iter().chain(verbs).cloned() {
        let name = page.get_display_name().unwrap_or(page.get_name()).to_owned();
        let path = folder.join(format!("{name}.1"));
        let mut text = Vec::new();
        Man::new(page).render(&mut text).map_err(|error| failed(&path, error))?;
        std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
        context.messages.print_path(&path)?;
    }
    Ok(Exit::Done)
}
