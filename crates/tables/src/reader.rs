//! A table of moderate size, read back column by column.

use std::collections::HashMap;

use parquet::basic::Type as Physical;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::{Column, ColumnKind, SCHEMA, Table, TableError};

/// A table that says it needs more memory than this is refused.
const MOST_BYTES: i64 = 4 << 30;

/// More rows for each byte of a file than any table has: times and names differ from row to row.
const MOST_ROWS_PER_BYTE: usize = 128;

/// The content of a table.
#[derive(Debug)]
pub struct TableColumns {
    rows: usize,
    columns: HashMap<&'static str, Values>,
}

/// Values of one column, one for each row.
#[derive(Debug)]
enum Values {
    Integer(Vec<Option<i64>>),
    Text(Vec<Option<ByteArray>>),
    Flag(Vec<Option<bool>>),
}

impl TableColumns {
    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A number or a time; `None` where it is not known.
    pub fn integer(&self, row: usize, column: &str) -> Option<i64> {
        match self.columns.get(column)? {
            Values::Integer(values) => *values.get(row)?,
            _ => None,
        }
    }

    /// A text; `None` where it is not known.
    pub fn text(&self, row: usize, column: &str) -> Option<&str> {
        match self.columns.get(column)? {
            Values::Text(values) => values.get(row)?.as_ref()?.as_utf8().ok(),
            _ => None,
        }
    }

    /// Yes or no; `None` where it is not known.
    pub fn flag(&self, row: usize, column: &str) -> Option<bool> {
        match self.columns.get(column)? {
            Values::Flag(values) => *values.get(row)?,
            _ => None,
        }
    }
}

/// All rows of a table.
pub fn read(table: Table, content: Vec<u8>) -> Result<TableColumns, TableError> {
    // The reader checks what it reads, but not all of it: an index out of a damaged page must not end the program.
    let damaged = || TableError::Damaged { table, reason: "a page contradicts its header".to_owned() };
    types::guarded(|| columns(table, content)).unwrap_or_else(|| Err(damaged()))
}

fn columns(table: Table, content: Vec<u8>) -> Result<TableColumns, TableError> {
    let damaged = |error: ParquetError| TableError::Damaged { table, reason: error.to_string() };
    let most_rows = content.len().saturating_mul(MOST_ROWS_PER_BYTE);
    let file = SerializedFileReader::new(bytes::Bytes::from(content)).map_err(damaged)?;
    let metadata = file.metadata();
    let places = places(table, metadata.file_metadata())?;
    let claimed = |size: i64| TableError::Damaged { table, reason: format!("it claims {size} bytes of rows") };
    let size = metadata.row_groups().iter().try_fold(0i64, |sum, group| sum.checked_add(group.total_byte_size()));
    if let Some(size) = size.filter(|size| !(0..=MOST_BYTES).contains(size)) {
        return Err(claimed(size));
    }
    let rows = usize::try_from(metadata.file_metadata().num_rows()).map_err(|_| claimed(-1))?;
    let of_groups = metadata.row_groups().iter().map(|group| usize::try_from(group.num_rows()).unwrap_or(usize::MAX));
    if of_groups.fold(0, usize::saturating_add) != rows || rows > most_rows {
        return Err(TableError::Damaged { table, reason: format!("it claims {rows} rows, more than its bytes hold") });
    }
    let mut columns = HashMap::new();
    for (column, place) in places {
        let mut values = Values::new(column);
        for group in 0..metadata.num_row_groups() {
            let group = file.get_row_group(group).map_err(damaged)?;
            values.read(column, place, &*group).map_err(damaged)?;
        }
        if values.len() != rows {
            let reason = format!("column {} has {} values for {rows} rows", column.name, values.len());
            return Err(TableError::Damaged { table, reason });
        }
        columns.insert(column.name, values);
    }
    Ok(TableColumns { rows, columns })
}

impl Values {
    fn new(column: &Column) -> Self {
        match column.kind {
            ColumnKind::Integer | ColumnKind::Long | ColumnKind::Time => Self::Integer(Vec::new()),
            ColumnKind::Text => Self::Text(Vec::new()),
            ColumnKind::Flag => Self::Flag(Vec::new()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Integer(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Flag(values) => values.len(),
        }
    }

    /// Adds the values of a row group.
    fn read(&mut self, column: &Column, place: usize, group: &dyn RowGroupReader) -> Result<(), ParquetError> {
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        match (self, column.kind) {
            (Self::Integer(values), ColumnKind::Integer) => {
                values.extend(chunk::<Int32Type>(group, place, rows)?.into_iter().map(|value| value.map(i64::from)));
            }
            (Self::Integer(values), _) => values.extend(chunk::<Int64Type>(group, place, rows)?),
            (Self::Text(values), _) => values.extend(chunk::<ByteArrayType>(group, place, rows)?),
            (Self::Flag(values), _) => values.extend(chunk::<BoolType>(group, place, rows)?),
        }
        Ok(())
    }
}

/// One column of a row group: a value for each row, in order.
fn chunk<T: DataType>(
    group: &dyn RowGroupReader,
    place: usize,
    rows: usize,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let pages = Box::new(CheckedPages { pages: group.get_column_page_reader(place)?, rows });
    let column = group.metadata().schema_descr().column(place);
    let mut reader: ColumnReaderImpl<T> = get_typed_column_reader(get_column_reader(column, pages));
    let (mut values, mut known) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (records, _, _) = reader.read_records(rows - read, Some(&mut known), None, &mut values)?;
        if records == 0 {
            break;
        }
        read += records;
    }
    if known.is_empty() {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(known.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
}

/// Pages whose headers claim no more values than there may be: the reader makes room for as many.
struct CheckedPages {
    pages: Box<dyn PageReader>,
    rows: usize,
}

impl Iterator for CheckedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        let is_possible = page.as_ref().is_none_or(|page| match page {
            // A value of a dictionary takes a byte or more.
            Page::DictionaryPage { buf, num_values, .. } => *num_values as usize <= buf.len(),
            Page::DataPage { num_values, .. } | Page::DataPageV2 { num_values, .. } => {
                *num_values as usize <= self.rows
            }
        });
        if is_possible { Ok(page) } else { Err(ParquetError::General("a page claims too many values".to_owned())) }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }
}

/// Where each column of the table is in the file, which must name our schema.
fn places(table: Table, file: &FileMetaData) -> Result<Vec<(&'static Column, usize)>, TableError> {
    let notes = file.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let note = notes.iter().find(|note| note.key == "llm-perf.schema").and_then(|note| note.value.as_deref());
    if note != Some(SCHEMA) {
        return Err(TableError::Schema { table, found: note.unwrap_or("none").to_owned() });
    }
    let columns = file.schema_descr().columns();
    let place = |column: &'static Column| {
        let physical = match column.kind {
            ColumnKind::Integer => Physical::INT32,
            ColumnKind::Long | ColumnKind::Time => Physical::INT64,
            ColumnKind::Text => Physical::BYTE_ARRAY,
            ColumnKind::Flag => Physical::BOOLEAN,
        };
        let fits = |one: &parquet::schema::types::ColumnDescPtr| {
            one.name() == column.name
                && one.physical_type() == physical
                && one.max_rep_level() == 0
                && one.max_def_level() == i16::from(column.optional)
        };
        let missing = TableError::Column { table, column: column.name, kind: column.kind.name() };
        columns.iter().position(fits).map(|found| (column, found)).ok_or(missing)
    };
    table.columns().iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, TableWriter};

    fn idle(rows: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = TableWriter::new(Table::Idle, &mut bytes).unwrap();
        for row in 0..rows {
            let rank = if row % 2 == 0 { Cell::Null } else { Cell::Integer(7) };
            let cells =
                [rank, Cell::Text("cuda:0"), Cell::Text("launching"), Cell::Integer(row as i64), Cell::Integer(-1)];
            writer.row(&cells).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), rows as u64);
        bytes
    }

    #[test]
    fn rows_come_back_over_several_row_groups() {
        let rows = read(Table::Idle, idle(200_000)).unwrap();
        assert_eq!(rows.rows(), 200_000);
        assert_eq!((0..200_000).map(|row| rows.integer(row, "ns").unwrap()).sum::<i64>(), 199_999 * 100_000);
        let last = 199_999;
        let found = (rows.integer(last, "rank"), rows.text(last, "cause"), rows.integer(last, "longest_ns"));
        assert_eq!(found, (Some(7), Some("launching"), Some(-1)));
        assert_eq!((rows.integer(0, "rank"), rows.flag(0, "rank"), rows.text(0, "no_such")), (None, None, None));
    }

    #[test]
    fn what_does_not_fit_a_column_is_refused() {
        let mut writer = TableWriter::new(Table::Idle, Vec::new()).unwrap();
        let error = writer.row(&[Cell::Null]).unwrap_err().to_string();
        assert_eq!(error, "cannot write the table idle: a row of 1 cells for 5 columns");
        let row = [Cell::Integer(1 << 40), Cell::Text("a"), Cell::Text("b"), Cell::Integer(0), Cell::Integer(0)];
        let error = writer.row(&row).unwrap_err().to_string();
        assert!(error.contains("column rank (int32)"), "{error}");
        let row = [Cell::Null, Cell::Text("a"), Cell::Null, Cell::Integer(0), Cell::Integer(0)];
        assert!(writer.row(&row).unwrap_err().to_string().contains("column cause"));
    }

    /// A column of one page.
    struct OnePage(Option<Page>);

    impl Iterator for OnePage {
        type Item = Result<Page, ParquetError>;

        fn next(&mut self) -> Option<Self::Item> {
            self.0.take().map(Ok)
        }
    }

    impl PageReader for OnePage {
        fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
            Ok(self.0.take())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<(), ParquetError> {
            Ok(())
        }
    }

    #[test]
    fn pages_that_claim_more_values_than_their_bytes_hold_are_refused() {
        let is_read = |num_values: u32| {
            let buf = bytes::Bytes::from_static(&[0; 8]);
            let page =
                Page::DictionaryPage { buf, num_values, encoding: parquet::basic::Encoding::PLAIN, is_sorted: false };
            CheckedPages { pages: Box::new(OnePage(Some(page))), rows: 1 }.get_next_page().is_ok()
        };
        assert_eq!([8, 9, u32::MAX].map(is_read), [true, false, false]);
    }

    #[test]
    fn other_tables_and_damaged_files_are_errors() {
        let good = idle(3);
        let error = read(Table::Runs, good.clone()).unwrap_err().to_string();
        assert_eq!(error, "the table runs has no column job of type text");
        assert!(matches!(read(Table::Idle, b"PAR1".to_vec()), Err(TableError::Damaged { .. })));
        for end in 0..good.len() {
            assert!(read(Table::Idle, good[..end].to_vec()).is_err(), "cut at {end}");
        }
        // A changed byte is an error or a changed value, never a panic.
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x55;
            let _ = read(Table::Idle, bad);
        }
    }
}
