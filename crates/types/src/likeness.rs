//! The name a user probably meant.

/// The known name most like `asked`, when one is close enough to be meant: the shortest that holds it, or the one that differs
/// in fewest letters, at most a third of them. Case does not count.
///
/// ```
/// let devices = ["a100", "h100-pcie", "h100-sxm"];
/// assert_eq!(llm_perf_types::nearest("H10O-sxm", devices), Some("h100-sxm"));
/// assert_eq!(llm_perf_types::nearest("h100", devices), Some("h100-sxm"));
/// assert_eq!(llm_perf_types::nearest("tpu", devices), None);
/// ```
pub fn nearest<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let asked = asked.to_lowercase();
    known
        .into_iter()
        .filter_map(|name| Some((distance(&asked, &name.to_lowercase())?, name)))
        .min()
        .map(|(_, name)| name)
}

/// Letters to change, behind whether any has to be: a name that holds the other is nearer than any misspelling.
fn distance(asked: &str, known: &str) -> Option<(bool, usize)> {
    let [asked_length, known_length] = [asked, known].map(|name| name.chars().count());
    if asked_length > 1 && known.contains(asked) {
        return Some((false, known_length - asked_length));
    }
    let longest = asked_length.max(known_length);
    let most = (longest / 3).max(1);
    // Lengths alone tell most names apart, however long what was asked for is.
    if asked_length.abs_diff(known_length) > most {
        return None;
    }
    let changes = strsim::damerau_levenshtein(asked, known);
    (changes <= most && changes < longest).then_some((true, changes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_neighbour_and_nonsense_finds_none() {
        let names = ["dsocr-base-1024", "dsocr-standard-v1", "llm-standard-v1"];
        assert_eq!(nearest("dsocr-standart-v1", names), Some("dsocr-standard-v1"));
        assert_eq!(nearest("resnet", names), None);
        assert_eq!(nearest("a", ["b"]), None);
        assert_eq!(nearest("a", ["ab", "bab"]), Some("ab"), "one letter is one change, wherever it stands");
    }

    #[test]
    fn a_part_of_a_name_finds_the_shortest_that_holds_it() {
        assert_eq!(nearest("t5", ["t0", "mistral-7b", "flan-t5-xxl", "t5-small"]), Some("t5-small"));
        assert_eq!(nearest("T5-Small", ["t5-small", "T5-Smallish"]), Some("t5-small"));
    }
}
