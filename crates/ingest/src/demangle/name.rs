//! Functions and names: nested ones, local ones, lambdas, operators.

use super::arguments;
use super::cursor::Cursor;
use super::types;

/// A name, and what follows from it for the function it may be of.
pub(super) struct Name {
    pub(super) text: String,
    /// Whether it ends with template arguments, so that a function of this name states what it returns.
    returns: bool,
    /// ` const` and the like, which stand behind the parameters.
    qualifiers: String,
}

impl Name {
    fn plain(text: String) -> Self {
        Self { text, returns: false, qualifiers: String::new() }
    }
}

/// A function with its parameters, or a variable.
pub(super) fn encoding(cursor: &mut Cursor<'_>) -> Option<String> {
    cursor.nested(|cursor| {
        let name = name(cursor)?;
        if matches!(cursor.peek(), None | Some(b'E' | b'.')) {
            return Some(name.text);
        }
        let returned = if name.returns { Some(types::whole(cursor)?) } else { None };
        let parameters = types::parameters(cursor, |next| matches!(next, None | Some(b'E' | b'.')))?;
        let before = returned.map(|returned| returned + " ").unwrap_or_default();
        Some(format!("{before}{}({parameters}){}", name.text, name.qualifiers))
    })
}

/// A name of any kind.
pub(super) fn name(cursor: &mut Cursor<'_>) -> Option<Name> {
    match cursor.peek()? {
        b'N' => nested(cursor),
        b'Z' => local(cursor),
        b'S' if !cursor.is_at("St") => {
            let text = substitution(cursor)?;
            let text = text + &arguments::arguments(cursor)?;
            Some(Name { text, returns: true, qualifiers: String::new() })
        }
        _ => {
            let std = if cursor.take("St") { "std::" } else { "" };
            let text = format!("{std}{}", unqualified(cursor, None)?);
            if cursor.peek() != Some(b'I') {
                return Some(Name::plain(text));
            }
            cursor.remember(&text)?;
            let text = text + &arguments::arguments(cursor)?;
            Some(Name { text, returns: true, qualifiers: String::new() })
        }
    }
}

/// `N` ... `E`: names one inside the other.
fn nested(cursor: &mut Cursor<'_>) -> Option<Name> {
    if !cursor.take("N") {
        return None;
    }
    let mut qualifiers = String::new();
    for (mark, word) in [("r", " __restrict__"), ("V", " volatile"), ("K", " const"), ("R", " &"), ("O", " &&")] {
        if cursor.take(mark) {
            qualifiers.push_str(word);
        }
    }
    let mut text = String::new();
    let mut last = String::new();
    let mut returns = false;
    loop {
        match cursor.peek()? {
            b'E' => {
                cursor.next();
                return (!text.is_empty()).then_some(Name { text, returns, qualifiers });
            }
            b'I' => {
                text.push_str(&arguments::arguments(cursor)?);
                returns = true;
            }
            b'S' if text.is_empty() => {
                if cursor.take("St") {
                    text.push_str("std");
                } else {
                    text = substitution(cursor)?;
                }
                last = text.clone();
                // Neither is remembered: `std` has a mark of its own, and the other is a reference already.
                continue;
            }
            b'T' if text.is_empty() => {
                text = types::template_parameter(cursor)?;
                returns = false;
            }
            _ => {
                let part = unqualified(cursor, Some(&last))?;
                text = if text.is_empty() { part.clone() } else { format!("{text}::{part}") };
                last = part;
                returns = false;
            }
        }
        if cursor.peek() != Some(b'E') {
            cursor.remember(&text)?;
        }
    }
}

/// `Z` function `E` what is inside of it.
fn local(cursor: &mut Cursor<'_>) -> Option<Name> {
    if !cursor.take("Z") {
        return None;
    }
    let function = encoding(cursor)?;
    if !cursor.take("E") {
        return None;
    }
    if cursor.take("d") {
        // Inside the default value of a parameter, counted from the last.
        cursor.sequence(10)?;
    }
    let inside = name(cursor)?;
    discriminator(cursor);
    Some(Name { text: format!("{function}::{}", inside.text), ..inside })
}

/// Tells apart things of one name in one function; no part of what is shown.
fn discriminator(cursor: &mut Cursor<'_>) {
    if cursor.take("__") {
        cursor.number();
        cursor.take("_");
    } else if cursor.take("_") {
        cursor.number();
    }
}

/// One name without what it is in. Constructors are called like the class before them.
fn unqualified(cursor: &mut Cursor<'_>, class: Option<&str>) -> Option<String> {
    match cursor.peek()? {
        b'0'..=b'9' => {
            let length = cursor.number()?;
            let text = cursor.text(length)?;
            Some(if text.starts_with("_GLOBAL__N") { "<unnamed>".to_owned() } else { text.to_owned() })
        }
        b'U' if cursor.take("Ul") => {
            let parameters = types::parameters(cursor, |next| next == Some(b'E'))?;
            let instance = if cursor.take("E") { cursor.sequence(10)? } else { return None };
            Some(format!("[lambda({parameters}) (instance {instance})]"))
        }
        b'U' if cursor.take("Ut") => Some(format!("[unnamed type (instance {})]", cursor.sequence(10)?)),
        b'L' => {
            // Internal linkage is not shown.
            cursor.next();
            unqualified(cursor, class)
        }
        b'C' => {
            cursor.next();
            cursor.next().filter(u8::is_ascii_digit)?;
            Some(class?.to_owned())
        }
        b'D' => {
            cursor.next();
            cursor.next().filter(u8::is_ascii_digit)?;
            Some(format!("~{}", class?))
        }
        _ => operator(cursor),
    }
}

/// Operators, by their two letters.
fn operator(cursor: &mut Cursor<'_>) -> Option<String> {
    const OPERATORS: &[(&str, &str)] = &[
        ("cl", "()"),
        ("ix", "[]"),
        ("eq", "=="),
        ("ne", "!="),
        ("lt", "<"),
        ("gt", ">"),
        ("le", "<="),
        ("ge", ">="),
        ("pl", "+"),
        ("mi", "-"),
        ("ml", "*"),
        ("dv", "/"),
        ("rm", "%"),
        ("aS", "="),
        ("pL", "+="),
        ("mI", "-="),
        ("mL", "*="),
        ("dV", "/="),
        ("an", "&"),
        ("or", "|"),
        ("eo", "^"),
        ("aa", "&&"),
        ("oo", "||"),
        ("nt", "!"),
        ("co", "~"),
        ("pp", "++"),
        ("mm", "--"),
        ("ls", "<<"),
        ("rs", ">>"),
        ("pt", "->"),
        ("cm", ","),
    ];
    let (_, sign) = OPERATORS.iter().find(|(letters, _)| cursor.take(letters))?;
    Some(format!("operator {sign}"))
}

/// `S_`, `S0_` and so on: something that was there before. `Sa` and its kind: things of the standard library.
pub(super) fn substitution(cursor: &mut Cursor<'_>) -> Option<String> {
    if !cursor.take("S") {
        return None;
    }
    const STANDARD: &[(&str, &str)] = &[
        ("a", "std::allocator"),
        ("b", "std::basic_string"),
        ("s", "std::string"),
        ("i", "std::istream"),
        ("o", "std::ostream"),
        ("d", "std::iostream"),
    ];
    if let Some((_, text)) = STANDARD.iter().find(|(mark, _)| cursor.take(mark)) {
        return Some((*text).to_owned());
    }
    let number = cursor.sequence(36)?;
    cursor.part(number)
}
