//! One summand of a price, with the formula it comes from.
//!
//! The text a reader sees is the text the compiler compiled: `term!` keeps both, so a page cannot print a formula other
//! than the one that was evaluated.

use types::{Bytes, Cost, Flops};

types::named! {
    /// What a term adds to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Quantity {
        /// Matrix FLOPs.
        FlopsMatrix = "flops_matrix",
        /// Elementwise and other vector operations.
        FlopsVector = "flops_vector",
        /// Parameters read.
        Weights = "bytes.weights",
        /// Activations read.
        ActivationsIn = "bytes.activations_in",
        /// Activations written.
        ActivationsOut = "bytes.activations_out",
        /// Cached keys and values read.
        KvRead = "bytes.kv_read",
        /// Keys and values written to the cache.
        KvWrite = "bytes.kv_write",
        /// Memory needed only while the operation runs; moves nothing by itself.
        Scratch = "scratch_bytes",
    }
}

/// Most symbols one formula uses.
const MOST_SYMBOLS: usize = 9;

/// Values of the symbols of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbols {
    entries: [(&'static str, u128); MOST_SYMBOLS],
    count: usize,
}

/// One summand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// What it adds to.
    pub quantity: Quantity,
    /// The formula, in the symbols.
    pub formula: &'static str,
    /// What the symbols stand for.
    pub symbols: Symbols,
    /// Its value.
    pub value: u128,
}

impl Symbols {
    /// These names and values; a formula with more than nine does not compile.
    pub const fn new<const N: usize>(symbols: [(&'static str, u128); N]) -> Self {
        const { assert!(N <= MOST_SYMBOLS, "a formula has at most nine symbols") };
        let mut entries = [("", 0); MOST_SYMBOLS];
        let mut index = 0;
        while index < N {
            entries[index] = symbols[index];
            index += 1;
        }
        Self { entries, count: N }
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u128)> + '_ {
        self.entries[..self.count].iter().copied()
    }

    /// The value of a symbol.
    pub fn get(&self, name: &str) -> Option<u128> {
        self.iter().find_map(|(symbol, value)| (symbol == name).then_some(value))
    }
}

impl Term {
    /// The formula with the numbers put in.
    pub fn substituted(&self) -> String {
        let mut text = String::with_capacity(self.formula.len() * 2);
        let mut rest = self.formula;
        while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic()) {
            let (before, from) = rest.split_at(start);
            let end = from.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(from.len());
            let (symbol, after) = from.split_at(end);
            text.push_str(before);
            match self.symbols.get(symbol) {
                Some(value) => text.push_str(&value.to_string()),
                None => text.push_str(symbol),
            }
            rest = after;
        }
        text.push_str(rest);
        text
    }
}

/// The sum of terms.
pub(crate) fn total(terms: &[Term]) -> Cost {
    let mut cost = Cost::ZERO;
    for term in terms {
        let bytes = || Bytes::new(u64::try_from(term.value).unwrap_or(u64::MAX));
        match term.quantity {
            Quantity::FlopsMatrix => cost.flops_matrix += Flops::new(term.value),
            Quantity::FlopsVector => cost.flops_vector += Flops::new(term.value),
            Quantity::Weights => cost.bytes.weights += bytes(),
            Quantity::ActivationsIn => cost.bytes.activations_in += bytes(),
            Quantity::ActivationsOut => cost.bytes.activations_out += bytes(),
            Quantity::KvRead => cost.bytes.kv_read += bytes(),
            Quantity::KvWrite => cost.bytes.kv_write += bytes(),
            Quantity::Scratch => {}
        }
    }
    cost
}

/// A term whose formula is both compiled and kept as text. The symbols are `u128` variables of those names.
macro_rules! term {
    ($quantity:ident, [$($symbol:ident),* $(,)?], $formula:expr) => {{
        let value: u128 = $formula;
        $crate::term::Term {
            quantity: $crate::term::Quantity::$quantity,
            formula: stringify!($formula),
            symbols: $crate::term::Symbols::new([$((stringify!($symbol), $symbol)),*]),
            value,
        }
    }};
}

pub(crate) use term;

#[cfg(test)]
#[allow(non_snake_case, reason = "symbols are written as in the literature")]
mod tests {
    #[test]
    fn a_term_keeps_the_formula_it_evaluated() {
        let (R, I, O) = (3, 5, 7);
        let term = term!(FlopsMatrix, [R, I, O], 2 * R * I * O);
        assert_eq!(term.value, 210);
        assert_eq!(term.formula, "2 * R * I * O");
        assert_eq!(term.substituted(), "2 * 3 * 5 * 7");
    }
}
