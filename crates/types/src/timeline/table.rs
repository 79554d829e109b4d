//! Values stored once and referred to by a small number.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::LaunchShape;

/// Place of a value in a [`Table`]. Four bytes, also inside an `Option`.
pub struct TableId<T: ?Sized>(std::num::NonZeroU32, PhantomData<fn() -> Box<T>>);

/// A text of a timeline.
pub type NameId = TableId<str>;
/// A launch shape of a timeline.
pub type LaunchShapeId = TableId<LaunchShape>;

impl<T: ?Sized> TableId<T> {
    /// The place, counted from zero.
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Distinct values in the order they were first seen.
pub struct Table<T: ?Sized> {
    values: Vec<Arc<T>>,
    places: HashMap<Arc<T>, TableId<T>>,
}

impl<T: ?Sized + Eq + Hash> Table<T> {
    /// The place of a value, which is added where it is new.
    ///
    /// # Panics
    /// With more than four thousand million distinct values.
    pub fn place<'a>(&mut self, value: &'a T) -> TableId<T>
    where
        Arc<T>: From<&'a T>,
    {
        if let Some(place) = self.places.get(value) {
            return *place;
        }
        self.add(Arc::from(value))
    }

    /// The place of a value that is handed over.
    pub fn place_owned(&mut self, value: T) -> TableId<T>
    where
        T: Sized,
    {
        if let Some(place) = self.places.get(&value) {
            return *place;
        }
        self.add(Arc::new(value))
    }

    fn add(&mut self, value: Arc<T>) -> TableId<T> {
        self.values.push(Arc::clone(&value));
        let number = u32::try_from(self.values.len()).ok().and_then(std::num::NonZeroU32::new);
        let place = TableId(number.expect("distinct values of a trace fit 32 bits"), PhantomData);
        self.places.insert(value, place);
        place
    }

    /// The place of a value that is already there.
    pub fn find(&self, value: &T) -> Option<TableId<T>> {
        self.places.get(value).copied()
    }

    /// The place of every value of another table in this one, in that one's order; how two tables become one.
    pub fn absorb(&mut self, other: Self) -> Vec<TableId<T>> {
        let absorb = |value: Arc<T>| match self.places.get(&value) {
            Some(place) => *place,
            None => self.add(value),
        };
        other.values.into_iter().map(absorb).collect()
    }
}

impl<T: ?Sized> Table<T> {
    /// The value at a place of this table.
    ///
    /// # Panics
    /// When the place is of a larger table.
    pub fn get(&self, place: TableId<T>) -> &T {
        &self.values[place.index()]
    }

    /// Distinct values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All values with their places.
    pub fn iter(&self) -> impl Iterator<Item = (TableId<T>, &T)> {
        let place = |(index, value)| {
            let number = u32::try_from(index + 1).ok().and_then(std::num::NonZeroU32::new)?;
            Some((TableId(number, PhantomData), value))
        };
        self.values.iter().map(|value| &**value).enumerate().filter_map(place)
    }
}

impl<T: ?Sized> Default for Table<T> {
    fn default() -> Self {
        Self { values: Vec::new(), places: HashMap::new() }
    }
}

impl<T: ?Sized> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self { values: self.values.clone(), places: self.places.clone() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.values).finish()
    }
}

// By hand, because a derive would ask the same of `T`.
impl<T: ?Sized> Clone for TableId<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ?Sized> Copy for TableId<T> {}
impl<T: ?Sized> PartialEq for TableId<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T: ?Sized> Eq for TableId<T> {}
impl<T: ?Sized> PartialOrd for TableId<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T: ?Sized> Ord for TableId<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<T: ?Sized> Hash for TableId<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<T: ?Sized> fmt::Debug for TableId<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_place() {
        let mut names = Table::<str>::default();
        let first = names.place("gemm");
        let second = names.place("copy");
        assert_eq!(names.place("gemm"), first);
        assert_ne!(first, second);
        assert_eq!((names.len(), names.get(second), names.find("conv")), (2, "copy", None));
        assert_eq!(size_of::<Option<NameId>>(), 4);
    }

    #[test]
    fn absorbing_a_table_says_where_its_values_went() {
        let (mut all, mut part) = (Table::<str>::default(), Table::<str>::default());
        for name in ["a", "b"] {
            all.place(name);
        }
        for name in ["c", "b"] {
            part.place(name);
        }
        let places = all.absorb(part);
        assert_eq!(places.iter().map(|place| all.get(*place)).collect::<Vec<_>>(), ["c", "b"]);
        assert_eq!(all.iter().map(|(_, name)| name).collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
