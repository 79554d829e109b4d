//! The verbs: one file each, one line each in the table below.
//!
//! To add a verb, write `verb/NAME.rs` with a `clap::Args` struct named `Arguments` (its doc comment is the one-line
//! description, its `after_help` holds the examples) and `pub(crate) fn run(arguments: &Arguments, context: &Context) ->
//! Result<Exit, CliError>`, then add its line here. Help is listed in table order.

pub(crate) mod command_line;
#[cfg(test)]
mod shown_commands;

use types::Exit;

use crate::context::Context;
use crate::error::CliError;

/// Makes the clap enum and the dispatch from one table, so that a verb is listed exactly when it runs.
macro_rules! verbs {
    ($($module:ident => $variant:ident,)+) => {
        $(pub(crate) mod $module;)+

        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Verb {
            $(#[allow(missing_docs, reason = "clap takes the description from the arguments")] $variant($module::Arguments),)+
        }

        impl Verb {
            /// Does it.
            pub(crate) fn run(&self, context: &Context) -> Result<Exit, CliError> {
                match self {
                    $(Verb::$variant(arguments) => $module::run(arguments, context),)+
                }
            }
        }
    };
}

verbs! {
    profile => Profile,
    deep => Deep,
    regions => Regions,
    analyze => Analyze,
    import => Import,
    report => Report,
    show => Show,
    compare => Compare,
    fleet => Fleet,
    whatif => Whatif,
    query => Query,
    export => Export,
    pack => Pack,
    unpack => Unpack,
    models => Models,
    workload => Workload,
    workloads => Workloads,
    hardware => Hardware,
    config => Config,
    runs => Runs,
    schema => Schema,
    validate => Validate,
    doctor => Doctor,
    env => Env,
    completions => Completions,
    man => Man,
}
