//! Rows into Parquet, one row group at a time.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::{Cell, Column, ColumnKind, SCHEMA, Table, TableError};

/// Rows of a row group.
const ROWS: usize = 131_072;

/// Writes the rows of one table.
pub struct TableWriter<W: Write + Send> {
    table: Table,
    file: SerializedFileWriter<W>,
    columns: Vec<Values>,
    rows: usize,
    written: u64,
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a file.
    pub fn new(table: Table, out: W) -> Result<Self, TableError> {
        let begun = |out| -> Result<_, ParquetError> {
            SerializedFileWriter::new(out, Arc::new(message(table)?), Arc::new(properties(table)?))
        };
        Ok(Self {
            table,
            file: begun(out).map_err(|error| refused(table, &error))?,
            columns: table.columns().iter().map(Values::new).collect(),
            rows: 0,
            written: 0,
        })
    }

    /// Adds a row: one cell for each column, in order. A cell that its column cannot hold is an error.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), TableError> {
        let columns = self.table.columns();
        if cells.len() != columns.len() {
            let reason = format!("a row of {} cells for {} columns", cells.len(), columns.len());
            return Err(TableError::Write { table: self.table, reason });
        }
        for ((values, column), cell) in self.columns.iter_mut().zip(columns).zip(cells) {
            if !values.push(column, *cell) {
                let reason = format!("{cell:?} does not go into column {} ({})", column.name, column.kind.name());
                return Err(TableError::Write { table: self.table, reason });
            }
        }
        self.rows += 1;
        if self.rows == ROWS {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends the file; how many rows it has.
    pub fn finish(mut self) -> Result<u64, TableError> {
        self.flush()?;
        self.file.close().map_err(|error| refused(self.table, &error))?;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<(), TableError> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns = &mut self.columns;
        let mut write = || -> Result<(), ParquetError> {
            let mut group = self.file.next_row_group()?;
            for values in columns.iter_mut() {
                values.write(&mut group)?;
            }
            group.close()?;
            Ok(())
        };
        write().map_err(|error| refused(self.table, &error))?;
        self.written += self.rows as u64;
        self.rows = 0;
        Ok(())
    }
}

fn refused(table: Table, error: &ParquetError) -> TableError {
    TableError::Write { table, reason: error.to_string() }
}

/// The schema of a table, as Parquet has it.
fn message(table: Table) -> Result<Type, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical) = match column.kind {
            ColumnKind::Integer => (Physical::INT32, None),
            ColumnKind::Long | ColumnKind::Time => (Physical::INT64, None),
            ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnKind::Flag => (Physical::BOOLEAN, None),
        };
        let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let converted = if logical.is_some() { ConvertedType::UTF8 } else { ConvertedType::NONE };
        let field = Type::primitive_type_builder(column.name, physical).with_repetition(repetition);
        field.with_logical_type(logical).with_converted_type(converted).build().map(Arc::new)
    };
    let fields = table.columns().iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(table.name()).with_fields(fields).build()
}

fn properties(table: Table) -> Result<WriterProperties, ParquetError> {
    let note = |key: &str, value: &str| KeyValue { key: key.to_owned(), value: Some(value.to_owned()) };
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("llm-perf {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![note("llm-perf.schema", SCHEMA), note("llm-perf.table", table.name())]))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_statistics_truncate_length(Some(64));
    for column in table.columns() {
        // Numbers that grow from row to row shrink to their differences; a dictionary of them would hold every one.
        if matches!(column.kind, ColumnKind::Time | ColumnKind::Long) {
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}

/// Values of one column that wait for their row group: those that are known, and for an optional column which are.
struct Values {
    data: Data,
    known: Option<Vec<i16>>,
}

enum Data {
    Integer(Vec<i32>),
    Long(Vec<i64>),
    Flag(Vec<bool>),
    /// Equal texts share their bytes.
    Text(Vec<ByteArray>, HashMap<Box<str>, ByteArray>),
}

impl Values {
    fn new(column: &Column) -> Self {
        let data = match column.kind {
            ColumnKind::Integer => Data::Integer(Vec::new()),
            ColumnKind::Long | ColumnKind::Time => Data::Long(Vec::new()),
            ColumnKind::Flag => Data::Flag(Vec::new()),
            ColumnKind::Text => Data::Text(Vec::new(), HashMap::new()),
        };
        Self { data, known: column.optional.then(Vec::new) }
    }

    /// Whether the column can hold the cell.
    fn push(&mut self, column: &Column, cell: Cell<'_>) -> bool {
        match (&mut self.data, cell) {
            (_, Cell::Null) if !column.optional => return false,
            (_, Cell::Null) => {}
            (Data::Integer(values), Cell::Integer(number)) => match i32::try_from(number) {
                Ok(number) => values.push(number),
                Err(_) => return false,
            },
            (Data::Long(values), Cell::Integer(number)) => values.push(number),
            (Data::Flag(values), Cell::Flag(flag)) => values.push(flag),
            (Data::Text(values, seen), Cell::Text(text)) => {
                let value = match seen.get(text) {
                    Some(value) => value.clone(),
                    None => {
                        let value = ByteArray::from(text.as_bytes().to_vec());
                        seen.insert(text.into(), value.clone());
                        value
                    }
                };
                values.push(value);
            }
            _ => return false,
        }
        if let Some(known) = &mut self.known {
            known.push(i16::from(cell != Cell::Null));
        }
        true
    }

    /// Writes the next column of a row group and begins anew.
    fn write<W: Write + Send>(&mut self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        let known = self.known.as_deref();
        match &mut self.data {
            Data::Integer(values) => write_column::<Int32Type, W>(group, values, known)?,
            Data::Long(values) => write_column::<Int64Type, W>(group, values, known)?,
            Data::Flag(values) => write_column::<BoolType, W>(group, values, known)?,
            Data::Text(values, seen) => {
                write_column::<ByteArrayType, W>(group, values, known)?;
                seen.clear();
            }
        }
        if let Some(known) = &mut self.known {
            known.clear();
        }
        Ok(())
    }
}

fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Vec<T::T>,
    known: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("more columns than the schema has".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, known, None)?;
    column.close()?;
    values.clear();
    Ok(())
}
