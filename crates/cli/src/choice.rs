//! Options whose values are the names of an enum.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use types::{Named, Stage};

/// One of these, by its name.
pub(crate) fn one_of<T: Named>(values: &'static [T]) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(values.iter().map(|one| one.spelled()));
    names.try_map(|name| T::find(&name).ok_or("unknown name"))
}

/// A stage; their names are told where one is wrong.
pub(crate) fn stage(text: &str) -> Result<Stage, String> {
    Stage::find(text).ok_or_else(|| format!("expected one of {}", Stage::ALL.map(Stage::name).join(", ")))
}
