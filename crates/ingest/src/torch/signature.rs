//! What an operator was called with, from the lists `Input Dims`, `Input type`, `Input Strides` and `Concrete Inputs`.

use types::timeline::{Collective, OperatorSignature};

use super::event::Arguments;
use super::lexer::{Scan, Stop, peek, space, text, value};
use super::number::{integer, whole};

/// The signature the tokens describe; an absent one is empty. `None` where one is of another form.
///
/// An argument that is a list of tensors has one list of dimensions per tensor. It becomes that many entries, each with
/// the type of the list, so that the three lists keep going together.
pub(crate) fn signature(shapes: &[u8], types: &[u8], strides: &[u8], values: &[u8]) -> Option<OperatorSignature> {
    let (shapes, counts) = arguments(shapes, whole::<u64>)?;
    let (strides, _) = arguments(strides, integer)?;
    let mut named = Vec::new();
    list(types, 0, |token| {
        let count = counts.get(named.len()).copied();
        named.push((text(token).into_owned(), count.unwrap_or(1)));
        Some(())
    })?;
    let types = named.into_iter().flat_map(|(name, count)| std::iter::repeat_n(name, count)).collect();
    let mut written = Vec::new();
    list(values, 0, |token| {
        written.push(text(token).into_owned());
        Some(())
    })?;
    Some(OperatorSignature { shapes, types, strides, values: written, collective: None })
}

/// What PyTorch calls a group of processes to which the program gave no description.
const UNDESCRIBED: &str = "undefined";

/// The collective that an event describes beside its arguments; `None` where it describes none.
pub(crate) fn collective(arguments: &Arguments<'_>) -> Option<Collective> {
    (!arguments.collective.is_empty()).then(|| Collective {
        name: text(arguments.collective).into_owned(),
        dtype: text(arguments.element_type).into_owned(),
        input_elements: whole(arguments.input_elements),
        output_elements: whole(arguments.output_elements),
        group_size: whole(arguments.group_size),
        group: Some(text(arguments.group)).filter(|group| group != UNDESCRIBED).unwrap_or_default().into_owned(),
        members: text(arguments.members).into_owned(),
    })
}

/// A collective of which an annotation shows the input alone: all of its tensors, in one element type.
pub(crate) fn annotated(name: &str, called: &OperatorSignature) -> Collective {
    let dtype = called.types.first().filter(|first| called.types.iter().all(|other| other == *first));
    let elements = |shape: &Vec<u64>| shape.iter().try_fold(1_u64, |product, side| product.checked_mul(*side));
    let sum = called.shapes.iter().try_fold(0_u64, |sum, shape| sum.checked_add(elements(shape)?));
    Collective {
        name: name.to_owned(),
        dtype: dtype.cloned().unwrap_or_default(),
        input_elements: sum.filter(|_| called.shapes.iter().any(|shape| !shape.is_empty())),
        ..Collective::default()
    }
}

/// The lists of numbers in a list of arguments, and how many lists each argument has.
fn arguments<T>(token: &[u8], number: impl Fn(&[u8]) -> Option<T>) -> Option<(Vec<Vec<T>>, Vec<usize>)> {
    let (mut lists, mut counts) = (Vec::new(), Vec::new());
    let numbers = |token: &[u8]| {
        let mut numbers = Vec::new();
        list(token, 0, |token| {
            numbers.push(number(token)?);
            Some(())
        })?;
        Some(numbers)
    };
    list(token, 0, |argument| {
        let before = lists.len();
        let inner = argument.get(1..).map(|rest| &rest[space(rest, 0)..]);
        if inner.is_some_and(|rest| rest.starts_with(b"[")) {
            list(argument, 0, |tensor| {
                lists.push(numbers(tensor)?);
                Some(())
            })?;
        } else {
            lists.push(numbers(argument)?);
        }
        counts.push(lists.len() - before);
        Some(())
    })?;
    Some((lists, counts))
}

/// Hands every element of the list at `at` to `each`. An absent list has none. `None` where this is no list, or where
/// `each` says so.
pub(crate) fn list(token: &[u8], at: usize, mut each: impl FnMut(&[u8]) -> Option<()>) -> Option<()> {
    if token.is_empty() {
        return Some(());
    }
    let mut scan = || -> Scan<Option<()>> {
        if peek(token, at)? != b'[' {
            return Ok(None);
        }
        let mut at = space(token, at + 1);
        if peek(token, at)? == b']' {
            return Ok(Some(()));
        }
        loop {
            let end = value(token, at)?;
            if each(&token[at..end]).is_none() {
                return Ok(None);
            }
            at = space(token, end);
            match peek(token, at)? {
                b',' => at = space(token, at + 1),
                b']' => return Ok(Some(())),
                _ => return Err(Stop::Bad(at)),
            }
        }
    };
    scan().ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_tensors_has_an_entry_per_tensor() {
        let shapes = b"[[[1, 559, 32], [1,559,32]], [], [ ]]";
        let types = br#"["TensorList", "Scalar", ""]"#;
        let strides = b"[[[17888, 1, 559],[17888, 1, -559]], [], []]";
        let signature = signature(shapes, types, strides, br#"["", "3", "True"]"#).unwrap();
        assert_eq!(signature.shapes, [vec![1, 559, 32], vec![1, 559, 32], vec![], vec![]]);
        assert_eq!(signature.types, ["TensorList", "TensorList", "Scalar", ""]);
        assert_eq!(signature.strides, [vec![17888, 1, 559], vec![17888, 1, -559], vec![], vec![]]);
        assert_eq!(signature.values, ["", "3", "True"]);
    }

    #[test]
    fn an_annotation_tells_what_a_collective_sends() {
        let called = signature(b"[[2, 1024, 3]]", br#"["float"]"#, b"", b"").unwrap();
        let found = annotated("all_to_all", &called);
        assert_eq!((found.name.as_str(), found.dtype.as_str()), ("all_to_all", "float"));
        assert_eq!((found.input_elements, found.output_elements, found.group_size), (Some(6144), None, None));
        let mixed = signature(b"[[2], [3]]", br#"["float", "int"]"#, b"", b"").unwrap();
        assert_eq!(annotated("all_reduce", &mixed).dtype, "");
    }

    #[test]
    fn lists_that_are_absent_are_empty() {
        let signature = signature(b"", br#"["float"]"#, b"", b"").unwrap();
        assert_eq!((signature.shapes.len(), signature.types.len(), signature.strides.len()), (0, 1, 0));
    }

    #[test]
    fn what_is_no_list_of_whole_numbers_is_refused() {
        for shapes in ["1", "[1]", "[[1.5]]", "[[-1]]", r#"[["s0"]]"#, "[[[[1]]]]", "{}", "[[1 2]]", "[[1],]"] {
            assert_eq!(signature(shapes.as_bytes(), b"", b"", b""), None, "{shapes}");
        }
        assert_eq!(signature(b"[]", b"7", b"", b""), None);
    }
}
