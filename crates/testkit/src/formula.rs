//! Formula lines as layer pages print them, and their check: does the text give the number behind it?
//!
//! A line is `quantity = formula = numbers = value`. The check reads nothing but the text: the numbers must be the
//! formula with each symbol replaced by one number everywhere, and must evaluate to the value.
//!
//! Arithmetic is exact in whole numbers, `/` rounding down, as long as no number has a decimal point; one number with a
//! point makes the whole line one of real numbers. There are `+ - * / ^`, parentheses and `round()`; `^` binds tightest.

use std::collections::HashMap;
use std::iter::Peekable;

/// Parentheses inside each other, at most; more are a mistake and not a formula.
const DEEPEST: usize = 64;

/// The value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Exact.
    Whole(u128),
    /// In double precision.
    Real(f64),
}

/// A line that does not hold, or text that is no formula.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {reason}")]
pub struct FormulaError {
    /// The expression or line.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Number {
    /// Whether it is exactly that whole number.
    pub fn is(self, value: u128) -> bool {
        match self {
            Self::Whole(number) => number == value,
            // Both sides are rounded to a double, which is where the number came from.
            Self::Real(number) => number == value as f64,
        }
    }
}

/// The value of an expression of numbers; thousands may be set apart by commas.
pub fn evaluate(text: &str) -> Result<Number, FormulaError> {
    value_of(text).map_err(|reason| FormulaError { text: text.to_owned(), reason })
}

/// Checks one line `quantity = formula = numbers = value`.
pub fn check_line(line: &str) -> Result<(), FormulaError> {
    check(line).map_err(|reason| FormulaError { text: line.to_owned(), reason })
}

/// The formula lines of a layer page.
pub fn formula_lines(page: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    page.lines().filter(move |line| {
        let fence = line.starts_with("```");
        if fence {
            inside = *line == "```formula";
        }
        inside && !fence
    })
}

fn check(line: &str) -> Result<(), String> {
    let parts: Vec<&str> = line.split(" = ").collect();
    let [_, formula, numbers, value] = parts[..] else {
        return Err(format!("expected `quantity = formula = numbers = value`, got {} parts", parts.len()));
    };
    same_formula(formula, numbers)?;
    let Number::Whole(value) = value_of(value)? else {
        return Err(format!("the value `{value}` is not a whole number"));
    };
    match value_of(numbers)? {
        number if number.is(value) => Ok(()),
        Number::Whole(number) => Err(format!("the numbers give {number}")),
        Number::Real(number) => Err(format!("the numbers give {number}")),
    }
}

/// Whether `numbers` is `formula` with each symbol replaced by one number.
fn same_formula(formula: &str, numbers: &str) -> Result<(), String> {
    let (symbols, values) = (tokens(formula)?, tokens(numbers)?);
    if symbols.len() != values.len() {
        return Err("the numbers do not have the form of the formula".to_owned());
    }
    let mut known: HashMap<&str, f64> = HashMap::new();
    for (symbol, value) in symbols.into_iter().zip(values) {
        match (symbol, value) {
            (Token::Name(name), Token::Number(value)) => {
                let value = real(value)?;
                if let Some(other) = known.insert(name, value).filter(|other| *other != value) {
                    return Err(format!("`{name}` is once {other} and once {value}"));
                }
            }
            (Token::Number(symbol), Token::Number(value)) if real(symbol)? == real(value)? => {}
            (symbol, value) if symbol == value => {}
            (symbol, value) => return Err(format!("`{}` became `{}`", symbol.text(), value.text())),
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Number(&'a str),
    Name(&'a str),
    Sign(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Number(text) | Self::Name(text) | Self::Sign(text) => text,
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |part: fn(char) -> bool| rest.split_at(rest.find(|c| !part(c)).unwrap_or(rest.len()));
        let (token, after) = match first {
            '0'..='9' => {
                let (text, after) = word(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
                (Token::Number(text), after)
            }
            'A'..='Z' | 'a'..='z' => {
                let (text, after) = word(|c| c.is_ascii_alphanumeric() || c == '_');
                (Token::Name(text), after)
            }
            '+' | '-' | '*' | '/' | '^' | '(' | ')' => {
                let (text, after) = rest.split_at(1);
                (Token::Sign(text), after)
            }
            other => return Err(format!("`{other}` is no part of a formula")),
        };
        found.push(token);
        rest = after.trim_start();
    }
    Ok(found)
}

fn value_of(text: &str) -> Result<Number, String> {
    let tokens = tokens(text)?;
    let real = tokens.iter().any(|token| matches!(token, Token::Number(number) if number.contains('.')));
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), real, depth: 0 };
    let value = parser.sum()?;
    match parser.tokens.next() {
        None => Ok(value),
        Some(token) => Err(format!("`{}` is one too many", token.text())),
    }
}

struct Parser<'a, I: Iterator<Item = Token<'a>>> {
    tokens: Peekable<I>,
    real: bool,
    depth: usize,
}

impl<'a, I: Iterator<Item = Token<'a>>> Parser<'a, I> {
    fn sum(&mut self) -> Result<Number, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.next_sign(&["+", "-"]) {
            value = apply(sign, value, self.product()?)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<Number, String> {
        let mut value = self.power()?;
        while let Some(sign) = self.next_sign(&["*", "/"]) {
            value = apply(sign, value, self.power()?)?;
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<Number, String> {
        let base = self.atom()?;
        match self.next_sign(&["^"]) {
            Some(sign) => apply(sign, base, self.atom()?),
            None => Ok(base),
        }
    }

    fn atom(&mut self) -> Result<Number, String> {
        match self.tokens.next() {
            Some(Token::Number(text)) if self.real => real(text).map(Number::Real),
            Some(Token::Number(text)) => whole(text).map(Number::Whole),
            Some(Token::Sign("(")) => self.inside(),
            Some(Token::Name("round")) if self.next_sign(&["("]).is_some() => Ok(match self.inside()? {
                Number::Real(value) => Number::Real(value.round()),
                exact @ Number::Whole(_) => exact,
            }),
            Some(token) => Err(format!("`{}` stands where a number should", token.text())),
            None => Err("it ends where a number should follow".to_owned()),
        }
    }

    /// What stands in parentheses, after the opening one.
    fn inside(&mut self) -> Result<Number, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("more than {DEEPEST} parentheses inside each other"));
        }
        let value = self.sum()?;
        self.depth -= 1;
        self.next_sign(&[")"]).map(|_| value).ok_or_else(|| "a parenthesis is not closed".to_owned())
    }

    fn next_sign(&mut self, signs: &[&str]) -> Option<&'a str> {
        self.tokens.next_if(|token| matches!(token, Token::Sign(sign) if signs.contains(sign))).map(Token::text)
    }
}

fn apply(sign: &str, left: Number, right: Number) -> Result<Number, String> {
    match (left, right) {
        (Number::Whole(a), Number::Whole(b)) => {
            let value = match sign {
                "+" => a.checked_add(b),
                "-" => a.checked_sub(b),
                "*" => a.checked_mul(b),
                "/" => a.checked_div(b),
                _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            };
            value.map(Number::Whole).ok_or_else(|| format!("{a} {sign} {b} is negative, too large or undefined"))
        }
        (Number::Real(a), Number::Real(b)) => Ok(Number::Real(match sign {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a / b,
            _ => a.powf(b),
        })),
        (a, b) => Err(format!("{a:?} and {b:?} do not mix")),
    }
}

fn whole(text: &str) -> Result<u128, String> {
    let plain = without_commas(text)?;
    plain.parse().map_err(|_| format!("`{text}` is no whole number"))
}

fn real(text: &str) -> Result<f64, String> {
    let plain = without_commas(text)?;
    plain.parse().map_err(|_| format!("`{text}` is no number"))
}

/// The digits, where commas stand at every thousand or nowhere.
fn without_commas(text: &str) -> Result<String, String> {
    let before_point = text.split('.').next().unwrap_or(text);
    let mut groups = before_point.split(',');
    let first = groups.next().unwrap_or_default().len();
    let rest: Vec<usize> = groups.map(str::len).collect();
    if !rest.is_empty() && (first > 3 || rest.iter().any(|length| *length != 3)) {
        return Err(format!("the commas of `{text}` are not at thousands"));
    }
    Ok(text.replace(',', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_and_division_rounds_down() {
        let cases: [(&str, u128); 8] = [
            ("2 * 512 * 1280 * 1280", 1_677_721_600),
            ("7 * 3 / 2", 10),
            ("7 * (3 / 2)", 7),
            ("2 * 3 ^ 2 + 1", 19),
            ("2 * 1 * 10 * (512 * (512 - 512) + 512 * (512 + 1) / 2) * 128", 336_199_680),
            ("round(7)", 7),
            ("340,282,366,920,938,463,463,374,607,431,768,211,455", u128::MAX),
            ("10 - 4 - 3", 3),
        ];
        for (text, value) in cases {
            assert_eq!(evaluate(text), Ok(Number::Whole(value)), "{text}");
        }
    }

    #[test]
    fn a_point_anywhere_makes_the_line_one_of_real_numbers() {
        // Distinct experts among 64 that 512 tokens touch with 6 choices each: all but 1e-20 of them.
        assert!(evaluate("round(64.0 * (1 - (1 - 6 / 64)^512))").unwrap().is(64));
        // One token touches exactly six.
        assert!(evaluate("round(64.0 * (1 - (1 - 6 / 64)^1) * 1000)").unwrap().is(6_000));
        assert_eq!(evaluate("7 / 2.0"), Ok(Number::Real(3.5)));
    }

    #[test]
    fn text_that_is_no_expression_is_refused() {
        let deep = "(".repeat(100_000);
        let texts = [
            "", "2 *", "* 2", "(1", "1)", "2 3", "N", "round", "round 2", "1 - 2", "1 / 0", "2 ^ 200", "1,00", "1.2.3",
            "2 % 3", "1234,567", &deep,
        ];
        for text in texts {
            assert!(evaluate(text).is_err(), "{text}");
        }
        let error = evaluate("1 - 2").unwrap_err().to_string();
        assert_eq!(error, "`1 - 2`: 1 - 2 is negative, too large or undefined");
    }

    #[test]
    fn a_true_line_holds() {
        for line in [
            "flops_matrix = 2 * R * I * O = 2 * 512 * 1280 * 1280 = 1,677,721,600",
            "bytes.weights = round(w * E * (1 - (1 - k / E)^T)) = round(100 * 64.0 * (1 - (1 - 6 / 64.0)^1)) = 600",
            "flops_vector = N = 7 = 7",
        ] {
            assert_eq!(check_line(line), Ok(()));
        }
    }

    #[test]
    fn a_line_that_does_not_hold_says_why() {
        let why = |line: &str| check_line(line).unwrap_err().reason;
        assert_eq!(why("q = 2 * N = 2 * 3 = 7"), "the numbers give 6");
        assert_eq!(why("q = N * N = 2 * 3 = 6"), "`N` is once 2 and once 3");
        assert_eq!(why("q = 2 * N = 3 * 2 = 6"), "`2` became `3`");
        assert_eq!(why("q = 2 * N = 6 = 6"), "the numbers do not have the form of the formula");
        assert_eq!(why("q = N + N = 3 * 3 = 9"), "`+` became `*`");
        assert_eq!(why("q = 6"), "expected `quantity = formula = numbers = value`, got 2 parts");
        assert_eq!(why("q = N = 1.5 = 1.5"), "the value `1.5` is not a whole number");
    }

    #[test]
    fn only_lines_in_formula_blocks_are_formula_lines() {
        let page = "a = b\n```formula\none\ntwo\n```\nthree\n```text\nfour\n```\n```formula\nfive\n```\n";
        assert_eq!(formula_lines(page).collect::<Vec<_>>(), ["one", "two", "five"]);
    }
}
