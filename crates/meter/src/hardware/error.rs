//! What can be wrong with a device file, or with a request for a device.

use thiserror::Error;
use types::{Exit, Failure};

/// Why a device could not be read or found.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum HardwareError {
    /// Files that do not describe devices.
    #[error("{message}")]
    File {
        /// Which file, what stands there, and what should.
        message: String,
        /// What to do about it, where that is not said.
        hint: Option<String>,
    },
    /// Several devices have names that start so, and none has this one.
    #[error("`{query}` matches several devices: {}", matches.join(", "))]
    Ambiguous {
        /// The name asked for.
        query: String,
        /// Ids of the devices.
        matches: Vec<String>,
    },
    /// No device has the name.
    #[error("unknown device `{query}`; {}", near(nearest, known))]
    Unknown {
        /// The name asked for.
        query: String,
        /// Ids of devices with a similar name, best first.
        nearest: Vec<String>,
        /// Ids of all devices.
        known: Vec<String>,
    },
}

impl HardwareError {
    /// A file that is not as it should be.
    pub(super) fn file(message: String) -> Self {
        Self::File { message, hint: None }
    }
}

impl Failure for HardwareError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::File { hint, .. } => hint.clone(),
            Self::Ambiguous { .. } => Some("name one of them; `llm-perf hardware NAME` shows one".to_owned()),
            Self::Unknown { query, .. } => Some(how_to_add(query)),
        }
    }
}

/// The devices that may be meant, or all there are.
fn near(nearest: &[String], known: &[String]) -> String {
    match nearest {
        [] => format!("known devices: {}", known.join(", ")),
        [one] => format!("the nearest is {one}"),
        many => format!("the nearest are {}", many.join(", ")),
    }
}

/// A complete file for the device, to be filled in: its zeros are refused when it is read.
fn how_to_add(query: &str) -> String {
    let id = slug(query);
    let name = quoted(query);
    format!(
        "`llm-perf hardware` lists the devices. To add this one, write DIR/hardware/{id}.yaml with real numbers for the zeros and pass --config-dir DIR:

id: {id}
name: {name}
vendor: NVIDIA
nvml_names: [{name}]
architecture: Ada Lovelace
sources:
  datasheet: {{title: Name of the document, publisher: NVIDIA, url: https://...}}
memory_bytes: {{value: 0, source: datasheet}}
bytes_per_second: {{value: 0, source: datasheet}}
sm_count: {{value: 0, source: datasheet}}
peaks: # dense rates, counting a multiply-add as two operations
  - {{dtype: bf16, unit: matrix, accumulate: fp32, flops: 0, source: datasheet}}
  - {{dtype: fp32, unit: vector, accumulate: fp32, flops: 0, source: datasheet}}
"
    )
}

/// An id made from a name: lower-case letters, digits and dashes.
fn slug(name: &str) -> String {
    let lower = name.to_lowercase();
    let lower = lower.strip_prefix("nvidia ").unwrap_or(&lower);
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "my-device".to_owned() } else { words.join("-") }
}

/// A YAML string; control characters have no place in a device name, and a name there must be.
fn quoted(name: &str) -> String {
    let printable: String = name.chars().filter(|c| !c.is_control()).collect();
    let printable = if printable.trim().is_empty() { "My device" } else { &printable };
    format!("'{}'", printable.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::super::Catalogue;
    use super::*;

    fn unknown(query: &str) -> HardwareError {
        Catalogue::built_in().unwrap().find(query).unwrap_err()
    }

    #[test]
    fn an_unknown_device_is_answered_with_the_file_that_adds_it() {
        let error = unknown("NVIDIA GeForce RTX 4090 D");
        insta::assert_snapshot!(format!("error: {error}\nhint: {}", error.hint().unwrap()));
    }

    #[test]
    fn the_offered_file_is_complete_but_its_zeros_are_refused() {
        for query in ["NVIDIA GeForce RTX 4090 D", "it's \"odd\": [x]\n#", "", "显卡"] {
            let hint = unknown(query).hint().unwrap();
            let file = hint.split_once("\n\n").unwrap().1;
            let catalogue = Catalogue::built_in().unwrap();
            let error = catalogue.clone().with_files([("new.yaml", file)]).unwrap_err();
            assert_eq!(error.to_string(), "new.yaml: `memory_bytes` is 0, expected a positive number", "{query}");

            let filled = file.replace("value: 0", "value: 1").replace("flops: 0", "flops: 1e12");
            catalogue.with_files([("new.yaml", filled)]).unwrap_or_else(|error| panic!("{query}: {error}"));
        }
    }

    #[test]
    fn an_id_is_made_of_plain_letters() {
        assert_eq!(slug("NVIDIA GeForce RTX 4090 D"), "geforce-rtx-4090-d");
        assert_eq!(slug("Tesla V100-SXM3-32GB"), "tesla-v100-sxm3-32gb");
        assert_eq!(slug("显卡"), "my-device");
    }
}
