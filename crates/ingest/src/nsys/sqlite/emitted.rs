//! Operators that PyTorch writes as NVTX ranges (`torch.autograd.profiler.emit_nvtx`):
//! `aten::mm, seq = 12, op_id = 3, sizes = [[64, 128], [128, 32]], input_op_ids = [(1,0), (2,0)]`. All but the name may be
//! missing. What the user opened with `record_function` looks alike and stays a range, without the numbers of the call.

use types::timeline::{NameId, OperatorSignature, SignatureId, Table};

use super::strings::Strings;
use crate::torch::signature::signature;

/// A text that PyTorch wrote, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Text<'a> {
    name: &'a [u8],
    /// The list of shapes; empty where there is none.
    sizes: &'a [u8],
    is_operator: bool,
}

impl<'a> Text<'a> {
    /// `None` for a text that nothing shows to be PyTorch's.
    fn of(text: &'a [u8]) -> Option<Self> {
        let mut parts = Text { name: text, sizes: &[], is_operator: false };
        let mut is_numbered = false;
        while let Some((rest, field)) = last_field(parts.name) {
            match field {
                Field::Sizes(sizes) => parts.sizes = sizes,
                Field::Sequence => parts.is_operator = true,
                Field::Call => is_numbered = true,
                Field::Inputs => {}
            }
            parts.name = rest;
        }
        let has_shape = parts.sizes.iter().any(u8::is_ascii_digit);
        let is_plain = |name: &[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(byte));
        let is_aten = parts.name.strip_prefix(b"aten::").is_some_and(|name| !name.is_empty() && is_plain(name));
        let is_scoped = is_numbered && memchr::memmem::find(parts.name, b"::").is_some();
        parts.is_operator |= has_shape || is_aten || is_scoped;
        (parts.is_operator || is_numbered).then_some(parts).filter(|parts| !parts.name.is_empty())
    }
}

/// What PyTorch writes behind a name.
enum Field<'a> {
    Sequence,
    Call,
    Sizes(&'a [u8]),
    Inputs,
}

/// The last field of a text, and what stands before it.
fn last_field(text: &[u8]) -> Option<(&[u8], Field<'_>)> {
    let is_list = text.last() == Some(&b']');
    // Every mark ends with an equals sign, a space and a bracket; there are few of those in a text.
    let cut = |mark: &[u8]| {
        memchr::memrchr_iter(b'=', text).find_map(|equals| {
            let (before, inside) = text.split_at_checked(equals + 3)?;
            Some((before.strip_suffix(mark)?, inside))
        })
    };
    if is_list {
        // Lists are the last of their kind, so the mark that stands last opens the list that ends the text.
        if let Some((rest, _)) = cut(b", input_op_ids = [") {
            return Some((rest, Field::Inputs));
        }
        let (rest, inside) = cut(b", sizes = [")?;
        return Some((rest, Field::Sizes(&text[text.len() - inside.len() - 1..])));
    }
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let before = &text[..text.len() - digits];
    if digits == 0 {
        return None;
    }
    match (before.strip_suffix(b", seq = "), before.strip_suffix(b", op_id = ")) {
        (Some(rest), _) => Some((rest, Field::Sequence)),
        (_, Some(rest)) => Some((rest, Field::Call)),
        _ => None,
    }
}

/// What a text becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emission {
    /// An operator with what it was called with.
    Operator(NameId, Option<SignatureId>),
    /// A range of the user's, by its name alone.
    Range(NameId),
}

/// Operators by their texts without the numbers of the call, of which every call has its own.
#[derive(Default)]
pub(crate) struct Emitted {
    known: hashbrown::HashMap<Box<[u8]>, Emission>,
    by_name: hashbrown::HashMap<NameId, Option<Emission>>,
    key: Vec<u8>,
    pub(crate) signatures: Table<OperatorSignature>,
}

impl Emitted {
    /// The same for a text that stands among the names already; each is looked at once.
    pub(crate) fn of_name(&mut self, name: NameId, strings: &mut Strings<'_>) -> Option<Emission> {
        if let Some(known) = self.by_name.get(&name) {
            return *known;
        }
        let text = strings.names.get(name).to_owned();
        let found = self.of(text.as_bytes(), strings);
        self.by_name.insert(name, found);
        found
    }

    /// What a range of that text is; `None` where it is not PyTorch's.
    pub(crate) fn of(&mut self, text: &[u8], strings: &mut Strings<'_>) -> Option<Emission> {
        let Text { name, sizes, is_operator } = Text::of(text)?;
        self.key.clear();
        self.key.extend_from_slice(name);
        self.key.push(u8::from(is_operator));
        self.key.extend_from_slice(sizes);
        if let Some(known) = self.known.get(&*self.key) {
            return Some(*known);
        }
        let placed = strings.place(name);
        let found = if is_operator {
            let shapes = signature(sizes, b"", b"", b"").filter(|found| !found.shapes.is_empty());
            Emission::Operator(placed, shapes.map(|shapes| self.signatures.place_owned(shapes)))
        } else {
            Emission::Range(placed)
        };
        self.known.insert(self.key.as_slice().into(), found);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(&str, &str, bool)> {
        let Text { name, sizes, is_operator } = Text::of(text.as_bytes())?;
        Some((std::str::from_utf8(name).unwrap(), std::str::from_utf8(sizes).unwrap(), is_operator))
    }

    #[test]
    fn every_form_of_pytorch_is_taken_apart() {
        // The forms of `getNvtxStr` in torch/csrc/profiler/util.cpp, releases 1.8 to 2.8.
        for (text, expected) in [
            ("aten::to, op_id = 317177", ("aten::to", "", true)),
            (
                "aten::mm, seq = 12, op_id = 3, sizes = [[64, 128], [128, 32]]",
                ("aten::mm", "[[64, 128], [128, 32]]", true),
            ),
            ("aten::add, sizes = [[2], [2], []], input_op_ids = [(1,0), (2,0)]", ("aten::add", "[[2], [2], []]", true)),
            ("AddmmBackward0, seq = 7, op_id = 9", ("AddmmBackward0", "", true)),
            (
                "autograd::engine::evaluate_function: MmBackward0, op_id = 4",
                ("autograd::engine::evaluate_function: MmBackward0", "", true),
            ),
            ("conv2d, seq = 3", ("conv2d", "", true)),
            ("aten::empty", ("aten::empty", "", true)),
            ("forward pass, op_id = 4", ("forward pass", "", false)),
            ("Optimizer.step#Adam.step, op_id = 8", ("Optimizer.step#Adam.step", "", false)),
        ] {
            assert_eq!(parts(text), Some(expected));
        }
    }

    #[test]
    fn ranges_of_others_are_left_alone() {
        for text in [
            "decode_step",
            "layer 12",
            "cub::DeviceReduce::Sum",
            "aten::",
            "",
            "op_id = 3",
            ", op_id = 3",
            "a [b]",
            "x, seq = ",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }
}
