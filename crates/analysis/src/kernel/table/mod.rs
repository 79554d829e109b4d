//! Which family and library a kernel's name belongs to: one table, one line per rule, the first match wins.
//!
//! A pattern is looked for in the function's path (namespaces and name, without template arguments and parameters); `<`
//! starts what is looked for in its template arguments. `^` stands for the start of the function's own name, `*` for any
//! text. All is in lower case. Special cases stand above the general ones they would fall under.

mod library;
mod word;

use super::family::Family;

/// A pattern, the family of the names it fits, and the library they come from.
pub(super) type Rule = (&'static str, Family, Option<&'static str>);

/// Every rule in order: names that a library is known by, then words that say what a kernel of any library does.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    library::RULES.iter().chain(word::RULES)
}
