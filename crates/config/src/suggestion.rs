//! The key a user probably meant.

use types::nearest;

use super::node::{Node, segments};

/// Existing keys that a key that does not exist may stand for: the same path with one segment misspelt, or the same last
/// segment elsewhere, or the closest key of all.
pub(crate) fn keys(root: &Node, wrong: &str) -> Vec<String> {
    if let Some(repaired) = repaired(root, wrong) {
        return vec![repaired];
    }
    let mut all = Vec::new();
    root.visit(&mut String::new(), &mut |key, _| all.push(key.to_owned()));
    let suffix = format!(".{wrong}");
    let elsewhere: Vec<String> = all.iter().filter(|key| key.ends_with(&suffix)).cloned().collect();
    if !elsewhere.is_empty() {
        return elsewhere;
    }
    let last = segments(wrong).last().unwrap_or_default();
    let same_name =
        |key: &&String| segments(key).last() == Some(last) && !last.bytes().all(|byte| byte.is_ascii_digit());
    let same: Vec<String> = all.iter().filter(same_name).take(4).cloned().collect();
    if !same.is_empty() {
        return same;
    }
    nearest(wrong, all.iter().map(String::as_str)).map(String::from).into_iter().collect()
}

/// The key with every misspelt segment replaced by the nearest that exists there.
fn repaired(root: &Node, wrong: &str) -> Option<String> {
    let mut at = root;
    let mut path = Vec::new();
    for segment in segments(wrong) {
        let mut names = Vec::new();
        if let super::node::Value::Map(map) = &at.value {
            names.extend(map.0.iter().map(|entry| entry.key.as_str()));
        }
        let name = if at.child(segment).is_some() { segment } else { nearest(segment, names)? };
        at = at.child(name)?;
        path.push(name);
    }
    Some(path.join("."))
}

/// A hint for the first of several suggestions, or for all of them.
pub(crate) fn did_you_mean<T: AsRef<str>>(names: &[T]) -> Option<String> {
    let names = names.iter().map(|name| format!("`{}`", name.as_ref()));
    (names.len() > 0).then(|| format!("did you mean {}?", super::error::alternatives(names)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::read;
    use crate::source::Source;

    #[test]
    fn wrong_keys_lead_to_existing_ones() {
        let root = read(&Source::file("a.yaml", "workload: {batch: 1, tokens: 2}\ninfer: {tokens: 3}")).expect("YAML");
        assert_eq!(keys(&root, "workload.bach"), ["workload.batch"]);
        assert_eq!(keys(&root, "worklod.batch"), ["workload.batch"]);
        assert_eq!(keys(&root, "tokens"), ["workload.tokens", "infer.tokens"]);
        assert_eq!(keys(&root, "model.tokens"), ["workload.tokens", "infer.tokens"]);
        assert_eq!(keys(&root, "zzz.qqq"), [""; 0]);
    }
}
