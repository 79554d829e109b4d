//! Changes of a JSON document that leave it one: members and elements swapped, doubled, removed, renamed and replaced.

use serde_json::{Value, json};

use super::bytes;
use crate::random::Random;

/// Most bytes of a document that changes may double up to.
const MOST: usize = 1 << 20;

/// A document after one to six changes; in one of eight cases its text is damaged as well.
pub(crate) fn mutated(random: &mut Random, seed: &Value) -> Vec<u8> {
    let mut value = seed.clone();
    for _ in 0..=random.below(6) {
        let donor = any(random, seed).clone();
        change(random, &mut value, donor);
    }
    let text = if random.once_in(2) { value.to_string() } else { format!("{value:#}") };
    let text = if text.len() > MOST { seed.to_string() } else { text };
    if random.once_in(8) { bytes::mutated(random, text.as_bytes()) } else { text.into_bytes() }
}

/// A document after one to four changes of values that stay of their kind, so that what has a type is still read.
pub(crate) fn refilled(random: &mut Random, seed: &Value) -> Vec<u8> {
    let mut value = seed.clone();
    for _ in 0..=random.below(4) {
        refill(random, &mut value);
    }
    value.to_string().into_bytes()
}

fn refill(random: &mut Random, value: &mut Value) {
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            let at = random.below(elements.len());
            match random.below(12) {
                0 => drop(elements.remove(at)),
                1 => elements.extend(vec![elements[at].clone(); 1 + random.below(5)]),
                2 => elements.clear(),
                3 => elements.reverse(),
                _ => refill(random, &mut elements[at]),
            }
        }
        Value::Object(members) if !members.is_empty() => {
            let at = random.below(members.len());
            refill(random, members.values_mut().nth(at).expect("a member"));
        }
        Value::Bool(flag) => *flag = !*flag,
        Value::String(text) => match random.below(4) {
            0 => *text = (*random.one_of(&bytes::STRANGE)).to_owned(),
            1 => *text = bytes::name(random),
            2 => text.push_str(&text.clone()),
            _ => *text = text.chars().rev().collect(),
        },
        Value::Number(number) if number.is_f64() => {
            let near = number.as_f64().unwrap_or(1.0);
            *value = json!(*random.one_of(&[0.0, -0.0, 1e308, -1e308, 1e-320, -near, near * 1e6, near * 0.5]));
        }
        Value::Number(number) => {
            let near = number.as_i64().unwrap_or(1);
            let near = [near.wrapping_mul(1000), near ^ 1 << random.below(40), near.wrapping_add(1)];
            let far = [0, 1, i64::MAX, 1 << 62, 1 << 61, 1 << 53, 1 << 32, (1 << 31) - 1];
            let other = if random.once_in(2) { *random.one_of(&near) } else { *random.one_of(&far) };
            // Most that has a type is never negative.
            *value = json!(if random.once_in(8) { other.wrapping_neg() } else { other });
        }
        _ => {}
    }
}

/// Some value of a document, at any depth.
fn any<'a>(random: &mut Random, value: &'a Value) -> &'a Value {
    let children: Vec<&Value> = match value {
        Value::Array(elements) => elements.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    };
    if children.is_empty() || random.once_in(4) {
        return value;
    }
    let child = *random.one_of(&children);
    any(random, child)
}

fn change(random: &mut Random, value: &mut Value, donor: Value) {
    // Deeper in three of four cases: documents have few large parts and many small ones.
    let deeper = !random.once_in(4);
    match value {
        Value::Array(elements) if deeper && !elements.is_empty() => {
            let at = random.below(elements.len());
            change(random, &mut elements[at], donor);
        }
        Value::Object(members) if deeper && !members.is_empty() => {
            let at = random.below(members.len());
            change(random, members.values_mut().nth(at).expect("a member"), donor);
        }
        Value::Array(elements) if !elements.is_empty() => reorder(random, elements, donor),
        Value::Object(members) if !members.is_empty() => {
            let name = random.one_of(&members.keys().cloned().collect::<Vec<_>>()).clone();
            let removed = members.shift_remove(&name).unwrap_or_default();
            match random.below(4) {
                0 => {}
                1 => drop(members.insert(format!("{name}s"), removed)),
                2 => drop(members.insert(name, donor)),
                _ => drop(members.insert(name, replacement(random, &removed))),
            }
        }
        _ => *value = if random.once_in(4) { donor } else { replacement(random, value) },
    }
}

fn reorder(random: &mut Random, elements: &mut Vec<Value>, donor: Value) {
    let (at, other) = (random.below(elements.len()), random.below(elements.len()));
    match random.below(6) {
        0 => elements.swap(at, other),
        1 => drop(elements.remove(at)),
        2 => elements.truncate(at),
        3 => elements.insert(at, donor),
        4 => elements.reverse(),
        _ => {
            let copies = vec![elements[at].clone(); 1 + random.below(30)];
            elements.splice(other..other, copies);
        }
    }
}

/// Something else of the same kind, or of another.
fn replacement(random: &mut Random, value: &Value) -> Value {
    let near = value.as_f64().unwrap_or(1.0);
    match random.below(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(*random.one_of(&bytes::STRANGE)),
        3 => json!(bytes::name(random)),
        4 => json!([]),
        5 => json!({}),
        6 => (0..1 + random.below(200)).fold(Value::Null, |inside, _| json!([inside])),
        7 => json!(*random.one_of(&[0, -1, 1, i64::MIN, i64::MAX, 1 << 62, 1 << 61, 1 << 53, 1 << 32, 1 << 31])),
        8 => json!(u64::MAX - random.below(3) as u64),
        9 => json!(*random.one_of(&[1e308, -1e308, 1e-320, 9.2e18, 0.1, 1e15])),
        10 => json!(near * *random.one_of(&[-1.0, 0.5, 2.0, 10.0, 1e3, 1e6])),
        11 => json!(near as i64 ^ 1 << random.below(40)),
        12 => json!(value.to_string()),
        _ => json!(random.below(1000)),
    }
}
