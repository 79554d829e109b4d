//! Paths of modules.

/// The path of the innermost module around both.
pub(super) fn common<'a>(one: &'a str, other: &str) -> &'a str {
    let mut end = 0;
    for (part, same) in one.split('.').zip(other.split('.')) {
        if part != same {
            break;
        }
        end += part.len() + 1;
    }
    &one[..end.saturating_sub(1).min(one.len())]
}

/// Whether a path lies below another.
pub(super) fn is_inside(path: &str, around: &str) -> bool {
    path.strip_prefix(around).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_share_whole_names_only() {
        assert_eq!(common("a.bc.d", "a.bd.d"), "a");
        assert_eq!(common("a.b", "a.b"), "a.b");
        assert_eq!(common("a", "b"), "");
    }
}
