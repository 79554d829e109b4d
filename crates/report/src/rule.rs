//! What documents mean beyond their shape: ids are unique, references resolve, trees have no cycles, numbers are not negative and
//! shares are shares. One table has the rules of each kind of document; what a schema can say is left to the schema.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use types::Violation;

/// One rule. Places are JSON pointers in which `*` stands for every element.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// No two elements of a list have the same values under these keys.
    Unique(&'static str, &'static [&'static str]),
    /// Every value at the first place that is not null is one of those at the second.
    Refers(&'static str, &'static str),
    /// Every key of the maps at the first place is one of the values at the second.
    KeysRefer(&'static str, &'static str),
    /// No element of a list is, by way of its parent, inside itself; named by the first key, its parent by the second.
    Tree(&'static str, &'static str, &'static str),
    /// In every object at a place, the number under the first key is no larger than that under the second.
    AtMost(&'static str, &'static str, &'static str),
    /// Every text at a place is a path that leads nowhere but further inside the folder of the document.
    Inside(&'static str),
    /// The number at a place is the number of elements in these lists.
    Counts(&'static str, &'static [&'static str]),
    /// No number is negative, but under these keys.
    NotNegative(&'static [&'static str]),
    /// What is called a share lies between 0 and 1, but at places that end so, or start so where a `/` ends what is named.
    Shares(&'static [&'static str]),
}

use Rule::{AtMost, Counts, Inside, KeysRefer, NotNegative, Refers, Shares, Tree, Unique};

/// Profiled against plain time may be below it, and above twice it; a remedy may cost time.
const OVERHEAD: &[&str] = &["/overhead/share", "/overhead/baseline_spread", "/tries/"];

/// The rules of every kind of document that has some, by the name of its schema.
const TABLE: &[(&str, &[Rule])] = &[
    ("manifest", &[Unique("/files", &["path"]), Inside("/files/*/path")]),
    (
        "metrics",
        &[
            Unique("/devices", &["id"]),
            Unique("/clocks", &["id"]),
            Unique("/stages", &["name"]),
            Unique("/kernels", &["name", "stage", "device"]),
            Unique("/regions", &["domain", "segments", "process", "device"]),
            Unique("/inputs", &["name"]),
            Refers("/run/device", "/devices/*/id"),
            Refers("/kernels/*/device", "/devices/*/id"),
            Refers("/samples/*/input", "/inputs/*/name"),
            Tree("/stages", "name", "parent"),
            Tree("/regions", "path", "parent"),
            AtMost("/regions/*", "kernels_exclusive", "kernels_inclusive"),
            AtMost("/regions/*", "total_ns_exclusive", "total_ns_inclusive"),
            AtMost("/kernels/*", "min_ns", "max_ns"),
            Unique("/tries", &["remedy"]),
            NotNegative(&[
                "share",
                "baseline_spread",
                "difference",
                "drift",
                "unix_ns_at_zero",
                "exit_code",
                "growth_bytes",
                "residual",
                "saved_ns",
                "saved_low_ns",
                "saved_high_ns",
                "saves_share",
                "predicted_saves_share",
                "low",
                "high",
            ]),
            Shares(OVERHEAD),
        ],
    ),
    (
        "kernels",
        &[
            Unique("/devices", &["id"]),
            Unique("/kernels", &["name", "stage", "device", "grid", "block"]),
            Refers("/run/device", "/devices/*/id"),
            Refers("/kernels/*/device", "/devices/*/id"),
            AtMost("/kernels/*", "min_ns", "max_ns"),
            NotNegative(&["overhead"]),
            // The profiler reads hits and accesses in different passes, so that their ratio can exceed 1.
            Shares(&["/l2_hit_share"]),
        ],
    ),
    (
        "analytic",
        &[
            Unique("/modules", &["module_id"]),
            Unique("/module_metrics", &["module_id", "profile_id"]),
            Unique("/operator_categories", &["category_id"]),
            Refers("/modules/*/parent_id", "/modules/*/module_id"),
            Refers("/modules/*/children/*", "/modules/*/module_id"),
            Refers("/module_metrics/*/module_id", "/modules/*/module_id"),
            Refers("/module_metrics/*/profile_id", "/workload/profile_id"),
            Refers("/module_metrics/*/operator_breakdown/*/category_id", "/operator_categories/*/category_id"),
            Refers("/categories/*/category_id", "/operator_categories/*/category_id"),
            Refers("/device/id", "/devices/*/device/id"),
            Tree("/modules", "module_id", "parent_id"),
            Inside("/layer_docs_dir"),
            NotNegative(&[]),
            Shares(&[]),
        ],
    ),
    ("sweep", &[NotNegative(&[]), Shares(&[])]),
    ("capacity", &[NotNegative(&[]), Shares(&[])]),
    ("capacity-sweep", &[NotNegative(&[]), Shares(&[])]),
    (
        "regions",
        &[
            Unique("/regions", &["domain", "style", "segments"]),
            Unique("/regions", &["folder"]),
            Inside("/regions/*/folder"),
            AtMost("/regions/*/aggregate", "kernels_exclusive", "kernels_inclusive"),
            AtMost("/regions/*/aggregate", "total_ns_exclusive", "total_ns_inclusive"),
            AtMost("/regions/*/parts/*/totals", "kernels_exclusive", "kernels_inclusive"),
            AtMost("/regions/*/parts/*/totals", "total_ns_exclusive", "total_ns_inclusive"),
            Unique("/metrics", &["name"]),
            KeysRefer("/regions/*/aggregate/metrics", "/metrics/*/name"),
            KeysRefer("/regions/*/parts/*/totals/metrics", "/metrics/*/name"),
            KeysRefer("/totals/metrics", "/metrics/*/name"),
            Tree("/regions", "path", "parent"),
            NotNegative(&[]),
            Shares(&[]),
        ],
    ),
    (
        "inputs",
        &[
            Unique("/images", &["name"]),
            Unique("/prompts", &["name"]),
            Counts("/count", &["/images", "/prompts", "/files"]),
        ],
    ),
    ("environment", &[Unique("/gpus", &["index"])]),
];

/// Every place where a document of that kind breaks one of its rules.
pub(crate) fn broken(kind: &str, document: &Value) -> Vec<Violation> {
    let rules = TABLE.iter().filter(|(name, _)| *name == kind).flat_map(|(_, rules)| *rules);
    rules.flat_map(|rule| rule.check(document)).map(|(pointer, message)| Violation { pointer, message }).collect()
}

/// A value and where it stands.
type Place<'v> = (String, &'v Value);

impl Rule {
    fn check(self, document: &Value) -> Vec<(String, String)> {
        match self {
            Unique(list, keys) => unique(document, list, keys),
            Refers(from, to) => refers(document, from, to),
            KeysRefer(from, to) => keys_refer(document, from, to),
            Tree(list, id, parent) => tree(document, list, id, parent),
            AtMost(place, small, large) => at_most(document, place, small, large),
            Inside(place) => inside(document, place),
            Counts(count, lists) => counts(document, count, lists),
            NotNegative(except) => numbers(document, |_, key, number| {
                (number < 0.0 && !except.contains(&key)).then(|| "is negative".to_owned())
            }),
            Shares(except) => numbers(document, |pointer, key, number| {
                let named =
                    |place: &str| pointer.ends_with(place) || place.ends_with('/') && pointer.starts_with(place);
                // What a finding rests on may be a share that cannot be, and is what the finding is about.
                let is_excepted = pointer.contains("/quantities/") || except.iter().any(|place| named(place));
                let is_wrong = is_share(key) && !is_excepted && !(0.0..=1.0).contains(&number);
                is_wrong.then(|| "is not between 0 and 1".to_owned())
            }),
        }
    }
}

fn is_share(key: &str) -> bool {
    let is_utilisation = ["mfu", "mbu"].iter().any(|name| key == *name || key.starts_with(&format!("{name}_")));
    key == "share" || key.ends_with("_share") || key.starts_with("share_of_") || is_utilisation
}

fn unique(document: &Value, list: &str, keys: &[&str]) -> Vec<(String, String)> {
    let mut first: HashMap<String, String> = HashMap::new();
    let mut found = Vec::new();
    for (pointer, element) in select(document, &format!("{list}/*")) {
        let values: Vec<String> =
            keys.iter().map(|key| element.get(key).map_or_else(|| "null".to_owned(), Value::to_string)).collect();
        let name = values.join(", ");
        match first.get(&name) {
            Some(other) => {
                let place = if keys.len() == 1 { format!("{pointer}/{}", keys[0]) } else { pointer };
                found.push((place, format!("{name} is that of {other} already; {} must be unique", keys.join(" + "))));
            }
            None => {
                first.insert(name, pointer);
            }
        }
    }
    found
}

fn refers(document: &Value, from: &str, to: &str) -> Vec<(String, String)> {
    let known: HashSet<&Value> = select(document, to).into_iter().map(|(_, value)| value).collect();
    let unknown = select(document, from).into_iter().filter(|(_, value)| !value.is_null() && !known.contains(value));
    unknown.map(|(pointer, value)| (pointer, format!("{value} is not in {to}"))).collect()
}

fn keys_refer(document: &Value, from: &str, to: &str) -> Vec<(String, String)> {
    let known: HashSet<&str> = select(document, to).into_iter().filter_map(|(_, value)| value.as_str()).collect();
    let mut found = Vec::new();
    for (pointer, map) in select(document, from) {
        for key in map.as_object().into_iter().flat_map(|map| map.keys()).filter(|key| !known.contains(key.as_str())) {
            found.push((format!("{pointer}/{}", escaped(key)), format!("{key:?} is not in {to}")));
        }
    }
    found
}

fn tree(document: &Value, list: &str, id: &str, parent: &str) -> Vec<(String, String)> {
    let elements = select(document, &format!("{list}/*"));
    let text = |element: &Value, key: &str| element.get(key).and_then(Value::as_str).map(str::to_owned);
    let parents: HashMap<String, String> =
        elements.iter().filter_map(|(_, element)| Some((text(element, id)?, text(element, parent)?))).collect();
    let mut found = Vec::new();
    for (pointer, element) in &elements {
        let Some(start) = text(element, id) else { continue };
        let mut seen = vec![start.as_str()];
        while let Some(next) = parents.get(seen[seen.len() - 1]) {
            if *next == start {
                let cycle = seen.join(" < ");
                found.push((format!("{pointer}/{parent}"), format!("{start:?} is inside itself: {cycle} < {start}")));
                break;
            }
            // A cycle further out is reported where it is.
            if seen.contains(&next.as_str()) {
                break;
            }
            seen.push(next);
        }
    }
    found
}

fn at_most(document: &Value, place: &str, small: &str, large: &str) -> Vec<(String, String)> {
    let number = |object: &Value, key: &str| object.get(key).and_then(Value::as_f64);
    let above = select(document, place).into_iter().filter(|(_, object)| number(object, small) > number(object, large));
    let above = above.filter(|(_, object)| number(object, large).is_some());
    above
        .map(|(pointer, object)| (format!("{pointer}/{small}"), format!("{} is above {large}", object[small])))
        .collect()
}

fn inside(document: &Value, place: &str) -> Vec<(String, String)> {
    let leads_out = |path: &str| {
        let mut parts = path.trim_end_matches('/').split('/');
        path.contains('\\') || parts.any(|part| matches!(part, "" | "." | ".."))
    };
    let texts = select(document, place).into_iter().filter_map(|(pointer, value)| Some((pointer, value.as_str()?)));
    let out = texts.filter(|(_, path)| leads_out(path));
    out.map(|(pointer, path)| (pointer, format!("{path:?} leads outside the folder of the document"))).collect()
}

fn counts(document: &Value, count: &str, lists: &[&str]) -> Vec<(String, String)> {
    let Some(number) = document.pointer(count).and_then(Value::as_u64) else { return Vec::new() };
    let length = |list: &&str| document.pointer(list).and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let there: u64 = lists.iter().map(length).sum();
    let names = lists.join(", ");
    let is_wrong = number != there;
    is_wrong
        .then(|| (count.to_owned(), format!("{number} is not the number of elements in {names}, {there}")))
        .into_iter()
        .collect()
}

/// Every number of the document that `wrong` says something of, with the key it stands under.
fn numbers(document: &Value, wrong: impl Fn(&str, &str, f64) -> Option<String>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left: Vec<(String, String, &Value)> = vec![(String::new(), String::new(), document)];
    while let Some((pointer, key, value)) = left.pop() {
        match value {
            Value::Number(number) => {
                let text = number.as_f64().and_then(|number| wrong(&pointer, &key, number));
                found.extend(text.map(|text| (pointer, format!("{value} {text}"))));
            }
            Value::Array(elements) => {
                left.extend(
                    elements
                        .iter()
                        .enumerate()
                        .map(|(place, inner)| (format!("{pointer}/{place}"), key.clone(), inner)),
                );
            }
            Value::Object(members) => {
                // A map of shares, such as `mfu_per_stage`, says so in its own name.
                let named = |name: &String| if is_share(&key) { key.clone() } else { name.clone() };
                left.extend(
                    members.iter().map(|(name, inner)| (format!("{pointer}/{}", escaped(name)), named(name), inner)),
                );
            }
            _ => {}
        }
    }
    found
}

/// Every value at a place, with its pointer.
fn select<'v>(document: &'v Value, place: &str) -> Vec<Place<'v>> {
    let mut found = vec![(String::new(), document)];
    for part in place.split('/').skip(1) {
        let step = |(pointer, value): Place<'v>| -> Vec<Place<'v>> {
            match (part, value) {
                ("*", Value::Array(elements)) => {
                    elements.iter().enumerate().map(|(index, inner)| (format!("{pointer}/{index}"), inner)).collect()
                }
                ("*", Value::Object(members)) => {
                    members.iter().map(|(name, inner)| (format!("{pointer}/{}", escaped(name)), inner)).collect()
                }
                (name, value) => {
                    value.get(name).map(|inner| (format!("{pointer}/{name}"), inner)).into_iter().collect()
                }
            }
        };
        found = found.into_iter().flat_map(step).collect();
    }
    found
}

/// A key inside a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use types::documents::find;

    use super::*;

    fn found(rule: Rule, document: &Value) -> Vec<String> {
        rule.check(document).into_iter().map(|(pointer, message)| format!("{pointer}: {message}")).collect()
    }

    #[test]
    fn every_kind_in_the_table_is_a_document() {
        for (kind, rules) in TABLE {
            assert!(find(kind).is_some() && !rules.is_empty(), "{kind}");
        }
    }

    #[test]
    fn a_second_element_of_the_same_name_is_named_with_the_first() {
        let document = json!({"files": [{"path": "a"}, {"path": "b"}, {"path": "a"}]});
        let expected = [r#"/files/2/path: "a" is that of /files/0 already; path must be unique"#];
        assert_eq!(found(Unique("/files", &["path"]), &document), expected);
        let pairs = json!({"kernels": [{"name": "k", "stage": null}, {"name": "k"}, {"name": "k", "stage": "decode"}]});
        assert_eq!(found(Unique("/kernels", &["name", "stage"]), &pairs).len(), 1, "absent is null");
    }

    #[test]
    fn a_reference_to_nothing_is_found_and_null_refers_to_nothing() {
        let document = json!({"a": [{"id": "x", "up": null}, {"id": "y", "up": "x"}, {"id": "z", "up": "w"}]});
        assert_eq!(found(Refers("/a/*/up", "/a/*/id"), &document), [r#"/a/2/up: "w" is not in /a/*/id"#]);
        let maps = json!({"m": {"a/b": 1, "c": 2}, "names": ["c"]});
        assert_eq!(found(KeysRefer("/m", "/names/*"), &maps), [r#"/m/a~1b: "a/b" is not in /names/*"#]);
    }

    #[test]
    fn a_cycle_is_reported_by_those_in_it() {
        let document = json!({"a": [
            {"id": "x", "up": "z"}, {"id": "y", "up": "x"}, {"id": "z", "up": "y"}, {"id": "child", "up": "x"}, {"id": "self", "up": "self"},
        ]});
        let messages = found(Tree("/a", "id", "up"), &document);
        assert_eq!(messages.len(), 4, "{messages:#?}");
        assert_eq!(messages[0], r#"/a/0/up: "x" is inside itself: x < z < y < x"#);
        assert_eq!(messages[3], r#"/a/4/up: "self" is inside itself: self < self"#);
    }

    #[test]
    fn numbers_and_shares_stay_within_their_bounds() {
        let document =
            json!({"a": {"wall_ns": -1, "change": -1, "share": 1.5}, "top_share": 1, "mfu": [0.5, 2.0], "shared": 7});
        assert_eq!(found(NotNegative(&["change"]), &document), ["/a/wall_ns: -1 is negative"]);
        let shares = found(Shares(&[]), &document);
        assert_eq!(shares.len(), 2, "{shares:?}");
        assert!(found(Shares(&["/a/share"]), &document).iter().all(|text| text.starts_with("/mfu/1")));
        let stages = json!({"mfu_per_stage": {"prefill": 0.4, "decode": 1.2}});
        assert_eq!(found(Shares(&[]), &stages), ["/mfu_per_stage/decode: 1.2 is not between 0 and 1"]);
    }

    #[test]
    fn a_part_is_no_larger_than_its_whole() {
        let rule = AtMost("/a/*", "part", "whole");
        let document = json!({"a": [{"part": 2, "whole": 2}, {"part": 3, "whole": 2}, {"part": 3, "whole": null}]});
        assert_eq!(found(rule, &document), ["/a/1/part: 3 is above whole"]);
    }

    #[test]
    fn a_path_does_not_lead_out_of_its_folder() {
        let document = json!({"a": [{"to": "x/y"}, {"to": "layers/"}, {"to": "../x"}, {"to": "/x"}, {"to": ""}, {"to": "x/../y"}]});
        assert_eq!(found(Inside("/a/*/to"), &document).len(), 4);
    }

    #[test]
    fn a_count_is_that_of_its_lists() {
        let document = json!({"count": 2, "images": [1], "prompts": []});
        let expected = ["/count: 2 is not the number of elements in /images, /prompts, /files, 1"];
        assert_eq!(found(Counts("/count", &["/images", "/prompts", "/files"]), &document), expected);
    }
}
