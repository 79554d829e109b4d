//! Paths of modules, as in the checkpoint: `model.layers.3.mlp`.

/// The path and every path above it.
pub(crate) fn with_ancestors(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('.').map(|(end, _)| end).chain([path.len()]);
    ends.map(|end| &path[..end])
}

/// A path with `*` for the numbers of layers and experts in it.
pub(crate) fn kind(path: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|letter| letter.is_ascii_digit());
    path.split('.').map(|part| if is_number(part) { "*" } else { part }).collect::<Vec<_>>().join(".")
}
