//! Types and parameters.

use super::arguments;
use super::cursor::Cursor;
use super::name;

/// A type in two parts: what stands before a name of that type, and what stands behind it.
struct Type {
    before: String,
    behind: String,
}

impl Type {
    fn plain(before: impl Into<String>) -> Self {
        Self { before: before.into(), behind: String::new() }
    }

    fn joined(&self) -> String {
        format!("{}{}", self.before, self.behind)
    }

    /// A pointer or reference to it.
    fn pointed(mut self, sign: &str) -> Self {
        if self.behind.starts_with(" (") || self.behind.starts_with(" [") || self.behind.starts_with('(') {
            let behind = self.behind.trim_start().to_owned();
            self.before.push_str(" (");
            self.before.push_str(sign);
            self.behind = format!("){behind}");
        } else {
            if !self.before.ends_with(['*', '&', '(']) {
                self.before.push(' ');
            }
            self.before.push_str(sign);
        }
        self
    }

    /// With a qualifier: before what is no pointer, behind what is one.
    fn qualified(mut self, word: &str) -> Self {
        if self.before.ends_with(['*', '&']) {
            self.before.push_str(word);
        } else {
            self.before = format!("{word} {}", self.before);
        }
        self
    }
}

/// A type, as text.
pub(super) fn whole(cursor: &mut Cursor<'_>) -> Option<String> {
    Some(read(cursor)?.joined())
}

/// Types up to an end, as parameters; `v` alone is none.
pub(super) fn parameters(cursor: &mut Cursor<'_>, ends: impl Fn(Option<u8>) -> bool) -> Option<String> {
    let mut all = Vec::new();
    while !ends(cursor.peek()) {
        all.push(whole(cursor)?);
    }
    if all == ["void"] {
        all.clear();
    }
    Some(all.join(", "))
}

/// `T_` is the first parameter of the template, `T0_` the second.
pub(super) fn template_parameter(cursor: &mut Cursor<'_>) -> Option<String> {
    if !cursor.take("T") {
        return None;
    }
    Some(format!("T{}", cursor.sequence(10)?))
}

fn read(cursor: &mut Cursor<'_>) -> Option<Type> {
    cursor.nested(|cursor| {
        if let Some(builtin) = builtin(cursor) {
            return Some(Type::plain(builtin));
        }
        let found = match cursor.peek()? {
            b'P' => pointer(cursor, "*")?,
            b'R' => pointer(cursor, "&")?,
            b'O' => pointer(cursor, "&&")?,
            b'K' => qualified(cursor, "const")?,
            b'V' => qualified(cursor, "volatile")?,
            b'r' => qualified(cursor, "__restrict__")?,
            b'A' => array(cursor)?,
            b'F' => function(cursor)?,
            b'D' if cursor.take("Dp") => {
                let pattern = read(cursor)?;
                Type { before: pattern.before + "...", behind: pattern.behind }
            }
            b'T' => {
                let parameter = template_parameter(cursor)?;
                if cursor.peek() == Some(b'I') {
                    cursor.remember(&parameter)?;
                    Type::plain(parameter + &arguments::arguments(cursor)?)
                } else {
                    Type::plain(parameter)
                }
            }
            b'S' if !cursor.is_at("St") => {
                let text = name::substitution(cursor)?;
                if cursor.peek() != Some(b'I') {
                    return Some(from_text(text));
                }
                Type::plain(text + &arguments::arguments(cursor)?)
            }
            _ => Type::plain(name::name(cursor)?.text),
        };
        cursor.remember(&found.joined())?;
        Some(found)
    })
}

/// A type that is referred to again. An array or a function keeps its two parts.
fn from_text(text: String) -> Type {
    match text.rfind(" [") {
        Some(at) if text.ends_with(']') && !text.contains("[lambda") && !text.contains("[unnamed") => {
            let behind = text[at..].to_owned();
            Type { before: text[..at].to_owned(), behind }
        }
        _ => Type::plain(text),
    }
}

fn pointer(cursor: &mut Cursor<'_>, sign: &str) -> Option<Type> {
    cursor.next();
    Some(read(cursor)?.pointed(sign))
}

fn qualified(cursor: &mut Cursor<'_>, word: &str) -> Option<Type> {
    cursor.next();
    Some(read(cursor)?.qualified(word))
}

fn array(cursor: &mut Cursor<'_>) -> Option<Type> {
    cursor.next();
    let length = cursor.number().map(|length| length.to_string()).unwrap_or_default();
    if !cursor.take("_") {
        return None;
    }
    let element = read(cursor)?;
    let rest = element.behind.trim_start().to_owned();
    Some(Type { before: element.before, behind: format!(" [{length}]{rest}") })
}

fn function(cursor: &mut Cursor<'_>) -> Option<Type> {
    cursor.next();
    cursor.take("Y");
    let returned = read(cursor)?;
    let parameters = parameters(cursor, |next| next == Some(b'E'))?;
    cursor.take("E").then(|| Type { before: returned.before, behind: format!(" ({parameters}){}", returned.behind) })
}

fn builtin(cursor: &mut Cursor<'_>) -> Option<&'static str> {
    const LONGER: &[(&str, &str)] = &[
        ("DF16_", "_Float16"),
        ("DF16b", "std::bfloat16_t"),
        ("Dn", "std::nullptr_t"),
        ("Di", "char32_t"),
        ("Ds", "char16_t"),
        ("Du", "char8_t"),
        ("Dh", "half"),
    ];
    if let Some((_, text)) = LONGER.iter().find(|(mark, _)| cursor.take(mark)) {
        return Some(text);
    }
    let text = match cursor.peek()? {
        b'v' => "void",
        b'w' => "wchar_t",
        b'b' => "bool",
        b'c' => "char",
        b'a' => "signed char",
        b'h' => "unsigned char",
        b's' => "short",
        b't' => "unsigned short",
        b'i' => "int",
        b'j' => "unsigned int",
        b'l' => "long",
        b'm' => "unsigned long",
        b'x' => "long long",
        b'y' => "unsigned long long",
        b'n' => "__int128",
        b'o' => "unsigned __int128",
        b'f' => "float",
        b'd' => "double",
        b'e' => "long double",
        b'g' => "__float128",
        b'z' => "...",
        _ => return None,
    };
    cursor.next();
    Some(text)
}
