//! JSON as Python writes it: `Infinity`, `-Infinity` and `NaN` stand where a number is not finite.

use std::borrow::Cow;

/// What Python writes and JSON does not have; the sign comes with its word.
const NOT_FINITE: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
const ABSENT: &str = "null";

/// The same text with `null`, an absent number, for every number that is not finite. Strings stay as they are, and so
/// does the place of what follows: a word longer than `null` is padded, and `NaN` takes the blank before it. Only a `NaN`
/// without a blank moves the rest of its line, by one column.
pub fn without_infinities(text: &str) -> Cow<'_, str> {
    if !NOT_FINITE.iter().any(|word| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let taken = match next {
            '"' => string_length(rest),
            _ => match NOT_FINITE.iter().find(|word| is_value(&plain, rest, word)) {
                Some(word) => {
                    if word.len() < ABSENT.len() && plain.ends_with(' ') {
                        plain.pop();
                    }
                    plain.push_str(&format!("{ABSENT:<width$}", width = word.len()));
                    rest = &rest[word.len()..];
                    continue;
                }
                None => next.len_utf8(),
            },
        };
        plain.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    Cow::Owned(plain)
}

/// Whether `rest` starts with the whole word: `NaNs` and `1Infinity` are mistakes, which the parser names.
fn is_value(before: &str, rest: &str, word: &str) -> bool {
    let joins = |next: char| next.is_alphanumeric() || matches!(next, '_' | '.' | '-' | '+');
    rest.strip_prefix(word).is_some_and(|after| !after.starts_with(joins)) && !before.ends_with(joins)
}

/// Bytes of the string at the start of `rest`, quotes included; all of it where the string does not end.
fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (place, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::without_infinities;
    use crate::config::ModelConfig;

    #[test]
    fn numbers_that_are_not_finite_are_absent_and_the_rest_keeps_its_place() {
        let text = r#"{"limit": [0.0, Infinity], "low": -Infinity, "none": NaN, "é": 1}"#;
        let plain = without_infinities(text);
        assert_eq!(plain, r#"{"limit": [0.0, null    ], "low": null     , "none":null, "é": 1}"#);
        assert_eq!(plain.len(), text.len());
    }

    #[test]
    fn strings_and_names_keep_these_words() {
        for text in [r#"{"NaN": "a \" Infinity"}"#, r#"{"a": "-Infinity\\"}"#, r#"{"a": "NaN"#] {
            assert_eq!(without_infinities(text), text);
        }
    }

    #[test]
    fn words_that_only_contain_them_stay_for_the_parser_to_refuse() {
        for text in ["[NaNs]", "[1Infinity]", "[--Infinity]", "[Infinity.0]"] {
            assert_eq!(without_infinities(text), text);
        }
    }

    /// The fields of a Llama, with `extra` behind them.
    fn llama(extra: &str) -> String {
        let sizes = r#""hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128"#;
        format!(r#"{{"architectures": ["LlamaForCausalLM"], {sizes}, "vocab_size": 100, "rms_norm_eps": 1e-5{extra}}}"#)
    }

    #[test]
    fn a_configuration_with_such_numbers_reads_as_one_without_them() {
        let read = |extra| ModelConfig::from_json("config.json", &llama(extra));
        let without = read("").unwrap();
        for extra in [r#", "time_step_limit": [0.0, Infinity]"#, r#", "num_key_value_heads": NaN, "low": -Infinity"#] {
            assert_eq!(read(extra).unwrap(), without, "{extra}");
        }
    }

    #[test]
    fn a_needed_number_that_is_not_finite_is_an_error_that_names_the_field() {
        let text = llama("").replace(": 64,", ": Infinity,");
        let problem = ModelConfig::from_json("config.json", &text).unwrap_err().to_string();
        assert!(problem.contains("config.json") && problem.contains("hidden_size"), "{problem}");
    }

    #[test]
    fn a_mistake_behind_such_a_number_is_named_at_its_own_place() {
        let text = "{\"a\": -Infinity, \"b\": NaN, \"c\": ?}";
        let problem = ModelConfig::from_json("config.json", text).unwrap_err().to_string();
        assert_eq!(problem, format!("config.json:1:{}: not valid JSON: expected value", text.find('?').unwrap() + 1));
    }

    #[test]
    fn a_family_that_is_not_read_is_refused_by_its_parts_and_not_by_its_infinity() {
        let text =
            r#"{"architectures": ["SambaForCausalLM"], "mamba_d_state": 128, "time_step_limit": [0.0, Infinity]}"#;
        let problem = ModelConfig::from_json("config.json", text).unwrap_err().to_string();
        assert!(problem.contains("`SambaForCausalLM`") && !problem.contains("JSON"), "{problem}");
    }
}
