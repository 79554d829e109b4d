//! Tables of families as text. A line `[kind Prefix]` begins a family, `[kind Prefix like other]` one that has all that another has,
//! and below it stands what it has otherwise: `key = value`. `~` in a value stands for the prefix, `-` alone for nothing. What a
//! family does not say is as in the first one of the file.

use std::collections::BTreeMap;

/// A family as it is written.
#[derive(Debug)]
pub(crate) struct Row {
    /// `model_type` of its files, or what else it goes by.
    pub(crate) kind: &'static str,
    prefix: &'static str,
    values: BTreeMap<&'static str, &'static str>,
}

/// What is read from a row, column by column.
pub(crate) trait Columns: Sized {
    /// The keys it reads.
    #[cfg(test)]
    const KEYS: &'static [&'static str];

    /// `None` where a value is missing or not one that its column takes.
    fn of(row: &Row) -> Option<Self>;
}

/// A value in a row.
pub(crate) trait FromText: Sized {
    /// `None` where the text is none.
    fn of(text: &'static str) -> Option<Self>;
}

/// A struct whose fields are columns, whose keys may begin with a word of their own, and others that are made of the row.
macro_rules! columns {
    ($(#[$about:meta])* $name:ident in $start:literal { $($(#[$doc:meta])* $field:ident: $type:ty,)* }
        $(also { $($(#[$more:meta])* $extra:ident: $kind:ty = $read:expr,)* })?) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $field: $type,)*
            $($($(#[$more])* pub(crate) $extra: $kind,)*)?
        }

        impl $crate::config::table::Columns for $name {
            #[cfg(test)]
            const KEYS: &'static [&'static str] = &[$(concat!($start, stringify!($field)),)*];

            fn of(row: &$crate::config::table::Row) -> Option<Self> {
                Some(Self {
                    $($field: row.get(concat!($start, stringify!($field)))?,)*
                    $($($extra: $read(row)?,)*)?
                })
            }
        }
    };
}

/// What the words of a column mean.
macro_rules! words {
    ($($type:ty: $($text:literal => $value:expr),+;)+) => {$(
        impl $crate::config::table::FromText for $type {
            fn of(text: &'static str) -> Option<Self> {
                Some(match text {
                    $($text => $value,)+
                    _ => return None,
                })
            }
        }
    )+};
}

pub(crate) use {columns, words};

impl Row {
    /// The rows of a table, without the one that says what the others have in common.
    pub(crate) fn all(text: &'static str) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(head) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                let words: Vec<&str> = head.split(' ').collect();
                let [kind, prefix] = [0, 1].map(|at| words.get(at).copied().unwrap_or_default());
                let like = words.get(3).and_then(|other| rows.iter().find(|row| row.kind == *other)).or(rows.first());
                let values = like.map(|row| row.values.clone()).unwrap_or_default();
                rows.push(Self { kind, prefix, values });
            } else if let (Some(row), Some((key, value))) = (rows.last_mut(), line.split_once(" = ")) {
                row.values.insert(key, value);
            }
        }
        rows.split_off(1.min(rows.len()))
    }

    /// What it goes by.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        Some(self.kind)
    }

    /// A value of a column.
    pub(crate) fn get<T: FromText>(&self, key: &str) -> Option<T> {
        let text = *self.values.get(key)?;
        T::of(if text.contains('~') { text.replace('~', self.prefix).leak() } else { text })
    }

    /// The module that defines its classes: the one it names, or that of its package in transformers.
    pub(crate) fn home(&self) -> Option<&'static str> {
        let package: &str = self.get("package")?;
        let package = if package.is_empty() { self.kind } else { package };
        let named: &str = self.get("home")?;
        Some(if named.is_empty() { format!("transformers.models.{package}.modeling_{package}").leak() } else { named })
    }

    /// Keys that are not among these and define no class, for tests.
    #[cfg(test)]
    pub(crate) fn unknown(&self, keys: &[&[&str]]) -> Vec<&'static str> {
        let is_known = |key: &&str| keys.concat().contains(key) || key.starts_with("define.");
        self.values.keys().copied().filter(|key| !is_known(key)).collect()
    }

    /// What its classes compute, where that is its own, for tests.
    #[cfg(test)]
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &'static str> {
        self.values.keys().copied().filter(|key| key.starts_with("define."))
    }
}

impl FromText for &'static str {
    fn of(text: &'static str) -> Option<Self> {
        Some(if text == "-" { "" } else { text })
    }
}

words! {
    bool: "true" => true, "false" => false;
}

impl FromText for u64 {
    fn of(text: &'static str) -> Option<Self> {
        text.parse().ok()
    }
}

impl FromText for f64 {
    fn of(text: &'static str) -> Option<Self> {
        text.parse().ok()
    }
}

impl<T: FromText> FromText for Option<T> {
    fn of(text: &'static str) -> Option<Self> {
        if text == "-" { Some(None) } else { T::of(text).map(Some) }
    }
}

impl<T: FromText, const N: usize> FromText for [T; N] {
    fn of(text: &'static str) -> Option<Self> {
        text.split(' ').map(T::of).collect::<Option<Vec<_>>>()?.try_into().ok()
    }
}

impl<T: FromText> FromText for &'static [T] {
    fn of(text: &'static str) -> Option<Self> {
        let words = text.split(' ').filter(|word| *word != "-");
        words.map(T::of).collect::<Option<Vec<T>>>().map(|words| &*words.leak())
    }
}

impl<A: FromText, B: FromText> FromText for (A, B) {
    fn of(text: &'static str) -> Option<Self> {
        let (first, second) = text.split_once(' ')?;
        Some((A::of(first)?, B::of(second)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_what_it_says_then_what_the_one_it_is_like_says_then_what_all_have() {
        let rows = Row::all("[all -]\na = ~One\nb = 1 2\n[x X]\nb = 3 4\n[y Y like x]\na = two\n");
        let texts: Vec<_> = rows.iter().map(|row| (row.kind, row.get::<&str>("a"), row.get::<[u64; 2]>("b"))).collect();
        assert_eq!(texts, [("x", Some("XOne"), Some([3, 4])), ("y", Some("two"), Some([3, 4]))]);
        assert_eq!((rows[0].get::<u64>("b"), rows[0].get::<bool>("c")), (None, None));
    }
}
