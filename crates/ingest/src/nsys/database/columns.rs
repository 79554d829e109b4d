//! Column names out of the `CREATE TABLE` text that SQLite keeps of every table.

/// What a table definition says about where its values are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    /// Names in stored order.
    pub(crate) names: Vec<String>,
    /// The column that is another name of the row number (`INTEGER PRIMARY KEY`).
    pub(crate) row_number: Option<usize>,
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    Open,
    Close,
    Comma,
}

impl Columns {
    /// The columns of a definition; none where the text is not one.
    pub(crate) fn of(definition: &str) -> Self {
        let mut columns = Self::default();
        let mut depth = 0_usize;
        let mut column: Vec<Token> = Vec::new();
        for token in tokens(definition) {
            match token {
                Token::Open => depth += 1,
                Token::Close if depth <= 1 => {
                    columns.add(&column);
                    return columns;
                }
                Token::Close => depth -= 1,
                Token::Comma if depth == 1 => {
                    columns.add(&column);
                    column.clear();
                }
                word if depth == 1 => column.push(word),
                _ => {}
            }
        }
        columns
    }

    fn add(&mut self, words: &[Token]) {
        const CONSTRAINTS: [&str; 5] = ["constraint", "primary", "unique", "check", "foreign"];
        let name = match words.first() {
            Some(Token::Quoted(name)) => name,
            Some(Token::Word(name)) if !CONSTRAINTS.contains(&name.to_ascii_lowercase().as_str()) => name,
            _ => return,
        };
        let says =
            |index: usize, text: &str| matches!(&words[index], Token::Word(word) if word.eq_ignore_ascii_case(text));
        let key = (2..words.len()).any(|index| says(index, "key") && says(index - 1, "primary"));
        if key && words.len() > 1 && says(1, "integer") {
            self.row_number = Some(self.names.len());
        }
        self.names.push(name.clone());
    }

    /// The stored place of a column. SQLite compares names without case.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|column| column.eq_ignore_ascii_case(name))
    }
}

/// Words, quoted names and punctuation; comments and everything else between them is dropped.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        rest = match first {
            '-' if after.starts_with('-') => rest.find('\n').map_or("", |end| &rest[end..]),
            '/' if after.starts_with('*') => rest.find("*/").map_or("", |end| &rest[end + 2..]),
            '"' | '`' | '\'' | '[' => {
                let close = if first == '[' { ']' } else { first };
                let Some(end) = after.find(close) else { return tokens };
                tokens.push(Token::Quoted(after[..end].to_owned()));
                &after[end + close.len_utf8()..]
            }
            '(' | ')' | ',' => {
                tokens.push(match first {
                    '(' => Token::Open,
                    ')' => Token::Close,
                    _ => Token::Comma,
                });
                after
            }
            _ if first.is_alphanumeric() || first == '_' => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..end].to_owned()));
                &rest[end..]
            }
            _ => after,
        };
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_with_commas_and_parentheses_hide_no_column() {
        let columns = Columns::of(
            "CREATE TABLE StringIds (\n -- Consolidation, of (repetitive) values.\n\n id INTEGER NOT NULL PRIMARY KEY, -- ID, \"reference\".\n\
             value TEXT NOT NULL /* a, b) */ DEFAULT (1, 2)\n)",
        );
        assert_eq!(columns.names, ["id", "value"]);
        assert_eq!(columns.row_number, Some(0));
    }

    #[test]
    fn a_key_over_several_columns_is_no_column_and_no_row_number() {
        let columns = Columns::of(
            "CREATE TABLE chains (id INTEGER NOT NULL, [stack depth] INTEGER, PRIMARY KEY (id, [stack depth]))",
        );
        assert_eq!(columns.names, ["id", "stack depth"]);
        assert_eq!(columns.row_number, None);
    }

    #[test]
    fn only_a_key_of_type_integer_is_the_row_number() {
        let columns = Columns::of("CREATE TABLE COMPOSITE_EVENTS (start INT, id INT NOT NULL PRIMARY KEY)");
        assert_eq!((columns.names.len(), columns.row_number), (2, None));
    }

    #[test]
    fn names_are_compared_without_case() {
        assert_eq!(Columns::of("create table t (a, \"End\" integer)").place("end"), Some(1));
    }

    #[test]
    fn a_text_that_is_no_definition_has_no_columns() {
        for text in
            ["", "CREATE TABLE", "CREATE TABLE t", "(", ")", "(,)", "('", "--", "/*", "CREATE TABLE t AS SELECT 1"]
        {
            assert_eq!(Columns::of(text), Columns::default(), "{text}");
        }
    }
}
