//! The tables of a job: any bytes are read as any table or refused, and no row is missing.

use tables::Table;

/// What must hold for any input; whether it was read as one of the tables.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let read = |table: Table| match tables::read(table, bytes.to_vec()) {
        Ok(columns) => {
            let last = columns.rows().saturating_sub(1);
            let name = table.columns().first().map_or("", |column| column.name);
            let _ = (columns.integer(last, name), columns.text(last, name), columns.flag(last, name));
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    };
    Table::ALL.into_iter().any(read)
}
