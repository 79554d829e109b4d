//! Template arguments.

use super::cursor::Cursor;
use super::{name, types};

/// `I` ... `E`, as text in angle brackets; nothing where none follow.
pub(super) fn arguments(cursor: &mut Cursor<'_>) -> Option<String> {
    if !cursor.take("I") {
        return Some(String::new());
    }
    let mut all = Vec::new();
    while !cursor.take("E") {
        argument(cursor, &mut all)?;
    }
    Some(format!("<{}>", all.join(", ")))
}

fn argument(cursor: &mut Cursor<'_>, all: &mut Vec<String>) -> Option<()> {
    match cursor.peek()? {
        b'L' => all.push(literal(cursor)?),
        // A pack: its members stand beside the others.
        b'J' => {
            cursor.next();
            while !cursor.take("E") {
                cursor.nested(|cursor| argument(cursor, all))?;
            }
        }
        b'X' => {
            cursor.next();
            all.push(expression(cursor)?);
            return cursor.take("E").then_some(());
        }
        _ => all.push(types::whole(cursor)?),
    }
    Some(())
}

/// `Li4E` is `(int)4`, `Lb1E` is `(bool)1`, `Lin2E` is `(int)-2`; `L_Z` ... `E` is a function or variable.
fn literal(cursor: &mut Cursor<'_>) -> Option<String> {
    if !cursor.take("L") {
        return None;
    }
    if cursor.take("_Z") {
        let text = name::encoding(cursor)?;
        return cursor.take("E").then_some(text);
    }
    let kind = types::whole(cursor)?;
    let sign = if cursor.take("n") { "-" } else { "" };
    let value = cursor.number()?;
    cursor.take("E").then(|| format!("({kind}){sign}{value}"))
}

/// What conditions on templates are made of: parameters, literals, negation. Other expressions are not understood.
fn expression(cursor: &mut Cursor<'_>) -> Option<String> {
    cursor.nested(|cursor| match cursor.peek()? {
        b'T' => types::template_parameter(cursor),
        b'L' => literal(cursor),
        b'n' if cursor.take("nt") => Some(format!("!{}", expression(cursor)?)),
        _ => None,
    })
}
