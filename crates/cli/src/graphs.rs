//! Which launches of CUDA graphs are recorded kernel by kernel, as arguments have it.

/// A share of launches, as `1/16`: one in so many.
pub(crate) fn share(text: &str) -> Result<u32, String> {
    let every = text.strip_prefix("1/").and_then(|every| every.parse().ok());
    every.filter(|every| (1..=1_000_000).contains(every)).ok_or_else(|| "expected a share such as 1/16".to_owned())
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_one_in_so_many() {
        assert_eq!((share("1/16"), share("1/1")), (Ok(16), Ok(1)));
        for text in ["", "16", "1/0", "2/3", "1/x", "1/-4", "1/1000001"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
