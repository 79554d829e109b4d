//! What a bundle has, in words.

use flow::{grouped, printable};
use types::BundleIndex;

use crate::message::Messages;

/// Files that are named for each reason to leave them out.
const NAMED: usize = 3;

/// Says how much a bundle has, and what it lacks where nobody reads that as JSON.
pub(crate) fn describe(index: &BundleIndex, json: bool, messages: &Messages) {
    let files = grouped(index.members().count() as u64);
    let bytes = index.total().map(|bytes| format!(", {bytes}")).unwrap_or_default();
    let redacted = index.redacted.as_ref().map_or_else(String::new, |redaction| {
        let count: u64 = redaction.replaced.values().sum();
        format!("; redacted: {} values replaced", grouped(count))
    });
    messages.note(format_args!("run {}: {files} files{bytes}{redacted}", printable(&index.run_id)));
    if json {
        return;
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for file in &index.left_out {
        match reasons.iter_mut().find(|(reason, _)| *reason == file.reason) {
            Some((_, paths)) => paths.push(&file.path),
            None => reasons.push((&file.reason, vec![&file.path])),
        }
    }
    for (reason, paths) in reasons {
        let named: Vec<_> = paths.iter().take(NAMED).map(|path| printable(path)).collect();
        let more = match paths.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        messages.note(format_args!("not in the bundle: {}{more} ({})", named.join(", "), printable(reason)));
    }
}
