//! The verbs: one file each, one line each in the table below.
//!
//! To add a verb, write `verb/NAME.rs` with a `clap::Args` struct named `Arguments` (its doc comment is the one-line
//! description) and `pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError>`, put its examples into
//! `verb/examples/NAME.txt`, then add its line here. Help is listed in table order, under the headings of the table.

pub(crate) mod command_line;
mod habit;
pub(crate) mod help;
pub(crate) mod refusal;
#[cfg(test)]
mod shown_commands;

use types::{Exit, UserError};

use crate::context::Context;

/// Makes the clap enum and the dispatch from one table, so that a verb is listed exactly when it runs.
macro_rules! verbs {
    ($($heading:literal { $($module:ident => $variant:ident,)+ })+) => {
        $($(pub(crate) mod $module;)+)+

        /// Headings of the help, and the verbs beneath each.
        pub(crate) const HEADINGS: &[(&str, &[&str])] = &[$(($heading, &[$(stringify!($module)),+])),+];

        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Verb {
            $($(
                #[allow(missing_docs, reason = "clap takes the description from the arguments")]
                #[command(after_help = include_str!(concat!("verb/examples/", stringify!($module), ".txt")).trim_end())]
                $variant($module::Arguments),
            )+)+
        }

        impl Verb {
            /// Does it.
            pub(crate) fn run(&self, context: &Context) -> Result<Exit, UserError> {
                match self {
                    $($(Verb::$variant(arguments) => $module::run(arguments, context),)+)+
                }
            }
        }
    };
}

verbs! {
    "Start here" {
        profile => Profile,
        import => Import,
        analyze => Analyze,
        compare => Compare,
        report => Report,
        serve => Serve,
        capacity => Capacity,
    }
    "Profile in depth" {
        run => Run,
        attach => Attach,
        deep => Deep,
        regions => Regions,
        fleet => Fleet,
        workload => Workload,
    }
    "Work with runs" {
        runs => Runs,
        show => Show,
        whatif => Whatif,
        query => Query,
        export => Export,
        pack => Pack,
        unpack => Unpack,
    }
    "Reference" {
        models => Models,
        workloads => Workloads,
        hardware => Hardware,
        config => Config,
        schema => Schema,
        validate => Validate,
    }
    "Setup" {
        doctor => Doctor,
        env => Env,
        completions => Completions,
        man => Man,
    }
}
