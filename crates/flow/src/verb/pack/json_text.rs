//! The strings of a JSON text, changed where they stand. Numbers, order and layout stay as they were, to the byte: figures
//! beyond 64 bits and the last digit of a fraction would not survive being read and written again.

use serde::de::IgnoredAny;

/// Where a string stands: the keys on the way to it, `*` for an element of a list.
pub(super) type Pointer<'a> = [&'a str];

/// What is open around a place in the text.
enum Around {
    Object { key: String, at_key: bool },
    List,
}

/// The text with every string value that `change` gives another text for, and every key that `rename` does.
pub(super) fn map_strings(
    text: &str,
    change: &mut dyn FnMut(&Pointer<'_>, &str) -> Option<String>,
    rename: &mut dyn FnMut(&str) -> Option<String>,
) -> Result<String, serde_json::Error> {
    // From here on the text is known to be JSON.
    serde_json::from_str::<IgnoredAny>(text)?;
    let mut changed = String::with_capacity(text.len());
    let mut around: Vec<Around> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '{', '}', '[', ']', ',']) {
        changed.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with('"') { literal(rest) } else { 1 };
        let (token, behind) = rest.split_at(length);
        rest = behind;
        match token {
            "{" => around.push(Around::Object { key: String::new(), at_key: true }),
            "[" => around.push(Around::List),
            "}" | "]" => drop(around.pop()),
            "," => {
                if let Some(Around::Object { at_key, .. }) = around.last_mut() {
                    *at_key = true;
                }
            }
            string => {
                let value: String = serde_json::from_str(string)?;
                let other = match around.last_mut() {
                    Some(Around::Object { key, at_key }) if *at_key => {
                        *at_key = false;
                        let other = rename(&value);
                        *key = value;
                        other
                    }
                    _ => {
                        let pointer: Vec<&str> = around.iter().map(Around::step).collect();
                        change(&pointer, &value)
                    }
                };
                match other {
                    Some(other) => changed.push_str(&serde_json::to_string(&other)?),
                    None => changed.push_str(string),
                }
                continue;
            }
        }
        changed.push_str(token);
    }
    changed.push_str(rest);
    Ok(changed)
}

impl Around {
    fn step(&self) -> &str {
        match self {
            Self::Object { key, .. } => key,
            Self::List => "*",
        }
    }
}

/// Bytes of the string that the text starts with, quotes included.
fn literal(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_change_where_they_stand_and_everything_else_stays() {
        let text = r#"{ "a": [1.10, "x\"]", {"b" : "y"}], "n":55340232221128654845, "c{": "z" }"#;
        let mut seen = Vec::new();
        let changed = map_strings(
            text,
            &mut |pointer, value| {
                seen.push(format!("{}={value}", pointer.join("/")));
                (value != "z").then(|| format!("<{value}>"))
            },
            &mut |key| (key == "c{").then(|| "d".to_owned()),
        );
        assert_eq!(seen, ["a/*=x\"]", "a/*/b=y", "c{=z"]);
        let expected = r#"{ "a": [1.10, "<x\"]>", {"b" : "<y>"}], "n":55340232221128654845, "d": "z" }"#;
        assert_eq!(changed.unwrap(), expected);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        assert!(map_strings("{\"a\": ", &mut |_, _| None, &mut |_| None).is_err());
        assert_eq!(map_strings("\"x\"", &mut |_, _| Some("y".to_owned()), &mut |_| None).unwrap(), "\"y\"");
    }
}
