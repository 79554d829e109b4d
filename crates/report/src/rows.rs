//! Rows of any query, whatever their columns: as a table for the terminal, as lines of CSV, as objects of JSON.

use serde_json::Value;

use crate::pages::sweep::csv::cell;
use crate::render::table::{Table, is_command};

/// Digits of a fraction in a table; CSV and JSON have all.
const DIGITS: usize = 6;

/// The table. Numbers stand flush right.
pub fn rows_table(names: &[String], rows: &[Vec<Value>]) -> Table {
    let mut table = Table::default();
    for (place, name) in names.iter().enumerate() {
        let values = || rows.iter().filter_map(|row| row.get(place)).filter(|value| !value.is_null());
        table.column(name, values().next().is_some() && values().all(Value::is_number));
    }
    for row in rows {
        table.row(row.iter().map(shown));
    }
    table
}

/// A line of CSV with its line break. What is unknown is empty.
pub fn csv_line(row: &[Value]) -> String {
    let cells: Vec<String> = row.iter().map(|value| cell(&exact(value)).into_owned()).collect();
    cells.join(",") + "\n"
}

/// A row as an object on one line, without its line break.
pub fn json_row(names: &[String], row: &[Value]) -> String {
    let field = |(name, value): (&String, &Value)| format!("{}:{value}", Value::from(name.as_str()));
    let text = format!("{{{}}}", names.iter().zip(row).map(field).collect::<Vec<_>>().join(","));
    // What a terminal would obey can only stand in texts, where an escape means the same.
    let escape = |c: char| if is_command(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    if text.contains(is_command) { text.chars().map(escape).collect() } else { text }
}

fn exact(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Number(number) if number.is_f64() => number.as_f64().map(rounded).unwrap_or_default(),
        other => exact(other),
    }
}

/// A fraction with as many digits as a reader can use.
fn rounded(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let magnitude = number.abs().log10().floor();
    if !(-5.0..15.0).contains(&magnitude) {
        return format!("{number:.*e}", DIGITS - 1);
    }
    // Within the range above.
    let behind = (DIGITS as i32 - 1 - magnitude as i32).max(0) as usize;
    let text = format!("{number:.behind$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(value: Value) -> Vec<Value> {
        value.as_array().unwrap().clone()
    }

    fn names() -> Vec<String> {
        ["name", "total_ns", "share"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_table_lines_numbers_up_and_rounds_fractions() {
        let rows = [row(json!(["gemm", 123_456_789, 0.123_456_789])), row(json!([null, 7, 1.5e-9]))];
        insta::assert_snapshot!(rows_table(&names(), &rows), @r"
        name   total_ns       share
        gemm  123456789    0.123457
        -             7  1.50000e-9
        ");
        assert_eq!([0.0, 2.5, 1_234_567.8, 433.768_067].map(rounded), ["0", "2.5", "1234568", "433.768"]);
    }

    #[test]
    fn csv_is_exact_and_no_cell_is_a_formula() {
        assert_eq!(csv_line(&row(json!(["=1+1", 0.1, null]))), "'=1+1,0.1,\n");
        assert_eq!(csv_line(&row(json!(["a,\"b\"", -5, true]))), "\"a,\"\"b\"\"\",-5,true\n");
    }

    #[test]
    fn nothing_a_file_says_commands_a_terminal() {
        let hostile = row(json!(["\u{1b}[2J\u{9b}31m\u{202e}x", 1, 0.5]));
        let texts = [
            rows_table(&names(), std::slice::from_ref(&hostile)).to_string(),
            csv_line(&hostile),
            json_row(&names(), &hostile),
        ];
        for text in &texts {
            assert!(!text.chars().any(|c| is_command(c) && c != '\n'), "{text:?}");
        }
        let read: Value = serde_json::from_str(&texts[2]).unwrap();
        assert_eq!(read["name"], "\u{1b}[2J\u{9b}31m\u{202e}x");
    }
}
