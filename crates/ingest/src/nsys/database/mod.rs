//! SQLite files, read only: just enough of the format to go through whole tables once.
//!
//! Our own reader and not `rusqlite`, because a trace arrives as bytes of unknown origin and is read once from end to end.
//! A walk over pages needs no file and no C compiler, holds nothing but the row at hand, survives damaged files by counting
//! what it lost, and can be fuzzed as a whole. It is also the faster way: SQLite 3.40 takes 0.53 CPU-seconds to sum up the
//! columns we need of a 100 MB export; going through them here takes 0.25, the timeline made from them included. It leaves
//! out what one pass needs not: indexes, queries, writing, a write-ahead log, text other than UTF-8.
//!
//! What the tables mean is left to [`super::sqlite`].

mod columns;
mod page;
mod record;

pub(crate) use columns::Columns;
pub(crate) use page::{Cell, Losses, PageSet, Pages};
pub(crate) use record::{Layout, Malformed, Value};

use crate::IngestError;

/// What every SQLite file starts with.
pub(crate) const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// What the messages call a file of this kind.
const EXPECTED: &str = "a SQLite database, as `nsys export --type sqlite` writes it";

/// A database and the tables in it.
#[derive(Clone, Debug)]
pub(crate) struct Database<'a> {
    pub(crate) pages: Pages<'a>,
    tables: Vec<StoredTable>,
    /// What was lost of the list of tables.
    pub(crate) losses: Losses,
}

/// One table of a database.
#[derive(Clone, Debug)]
pub(crate) struct StoredTable {
    pub(crate) name: String,
    pub(crate) columns: Columns,
    root: u32,
}

impl<'a> Database<'a> {
    /// Reads the header and the list of tables.
    pub(crate) fn open(file: &str, bytes: &'a [u8]) -> Result<Self, IngestError> {
        let pages = header(file, bytes)?;
        let mut database = Self { pages, tables: Vec::new(), losses: Losses::default() };
        let catalogue = StoredTable { name: "sqlite_schema".to_owned(), columns: Columns::default(), root: 1 };
        let layout = Layout::new([Some(0), Some(1), Some(3), Some(4)], None);
        let mut tables = Vec::new();
        let losses = database.rows(&catalogue, &layout, |[kind, name, root, definition]| {
            let root = root.narrow::<u32>()?;
            if let (Some(b"table"), Some(name), Some(root @ 1..)) = (kind.text()?, name.text()?, root) {
                let columns = Columns::of(&String::from_utf8_lossy(definition.text()?.unwrap_or_default()));
                tables.push(StoredTable { name: String::from_utf8_lossy(name).into_owned(), columns, root });
            }
            Ok(())
        });
        database.tables = tables;
        database.losses = losses;
        Ok(database)
    }

    /// All tables, in the order they were made.
    pub(crate) fn tables(&self) -> &[StoredTable] {
        &self.tables
    }

    /// The table of that name.
    pub(crate) fn table(&self, name: &str) -> Option<&StoredTable> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// Hands every row of a table to `each`; a row it calls malformed is counted with those that cannot be read.
    pub(crate) fn rows<const N: usize>(
        &self,
        table: &StoredTable,
        layout: &Layout<N>,
        mut each: impl FnMut([Value<'_>; N]) -> Result<(), Malformed>,
    ) -> Losses {
        let mut room = Vec::new();
        self.cells(table, |cell, visited, losses| {
            let payload = self.pages.payload(cell, visited, losses, &mut room).ok_or(Malformed);
            let row = payload.and_then(|payload| layout.decode(cell.number, payload)).and_then(&mut each);
            losses.rows += u64::from(row.is_err());
        })
    }

    /// Hands every row of a table to `each` as it is stored.
    pub(crate) fn cells(&self, table: &StoredTable, each: impl FnMut(Cell<'a>, &mut PageSet, &mut Losses)) -> Losses {
        let mut losses = Losses::default();
        self.pages.walk(table.root, &mut self.pages.unvisited(), &mut losses, each);
        losses
    }
}

/// Checks the header of a file and learns the size of its pages.
fn header<'a>(file: &str, bytes: &'a [u8]) -> Result<Pages<'a>, IngestError> {
    let file = file.to_owned();
    if bytes.is_empty() {
        return Err(IngestError::Empty { file, expected: EXPECTED });
    }
    if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) {
        let found = "it does not start with `SQLite format 3`".to_owned();
        return Err(IngestError::WrongFormat { file, expected: EXPECTED, found });
    }
    let number =
        |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_be_bytes(*four));
    let size = match number(14) & 0xffff {
        1 => 65_536,
        size => size as usize,
    };
    if bytes.len() < 100 || (size.is_power_of_two() && (512..=65_536).contains(&size) && bytes.len() < size) {
        let place = format!("byte {}", bytes.len());
        return Err(IngestError::Damaged { file, place, reason: "the file ends inside its first page".to_owned() });
    }
    let damaged =
        |at: usize, reason: String| IngestError::Damaged { file: file.clone(), place: format!("byte {at}"), reason };
    if !size.is_power_of_two() || !(512..=65_536).contains(&size) {
        return Err(damaged(16, format!("a page size of {size}, expected a power of two from 512 to 65536")));
    }
    let usable = size - usize::from(bytes[20]);
    if usable < 480 {
        return Err(damaged(20, format!("{usable} usable bytes in a page, expected at least 480")));
    }
    let unsupported = |reason: String| Err(IngestError::Unsupported { file: file.clone(), reason });
    if bytes[19] == 2 {
        return unsupported("the database uses a write-ahead log, which is not supported".to_owned());
    }
    if bytes[19] > 2 {
        return unsupported(format!("SQLite file format {}, expected 1", bytes[19]));
    }
    if number(44) > 4 {
        return unsupported(format!("SQLite schema format {}, expected 1 to 4", number(44)));
    }
    if number(56) > 1 {
        return unsupported("the database stores text as UTF-16, expected UTF-8".to_owned());
    }
    // Old libraries do not keep the size in the header up to date; then the file itself is the only word on it.
    let expected =
        if number(24) == number(92) && number(28) > 0 { number(28).into() } else { (bytes.len() / size) as u64 };
    Ok(Pages { bytes, size, usable, expected })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    const SMALL: &[u8] = include_bytes!("../../../tests/fixtures/nsys/small.sqlite");
    const SMALL_ROWS: &str = include_str!("../../../tests/fixtures/nsys/small.rows");
    const LARGE: &[u8] = include_bytes!("../../../tests/fixtures/nsys/dsocr-h200.sqlite.gz");
    const LARGE_ROWS: &str = include_str!("../../../tests/fixtures/nsys/dsocr-h200.rows");

    /// The same line per table as `rows.py` writes from what SQLite reads.
    fn rows(bytes: &[u8]) -> String {
        const COLUMNS: usize = 48;
        let database = Database::open("a file", bytes).unwrap();
        assert_eq!(database.losses, Losses::default());
        let mut text = String::new();
        for table in database.tables() {
            let count = table.columns.names.len();
            assert!((1..=COLUMNS).contains(&count), "{}: {count} columns", table.name);
            let layout: Layout<COLUMNS> =
                Layout::new(std::array::from_fn(|column| (column < count).then_some(column)), table.columns.row_number);
            let (mut rows, mut hash, mut room) = (0, 0xcbf2_9ce4_8422_2325_u64, Vec::new());
            let mut add = |bytes: &[u8]| {
                hash = bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
            };
            let losses = database.cells(table, |cell, visited, losses| {
                rows += 1;
                add(&[b"I", &cell.number.to_le_bytes()[..]].concat());
                let payload = database.pages.payload(cell, visited, losses, &mut room).unwrap();
                for value in &layout.decode(cell.number, payload).unwrap()[..count] {
                    match value {
                        Value::Null => add(b"N"),
                        Value::Integer(number) => add(&[b"I", &number.to_le_bytes()[..]].concat()),
                        Value::Real(number) => add(&[b"R", &number.to_le_bytes()[..]].concat()),
                        Value::Text(text) => add(&[b"T", &(text.len() as u64).to_le_bytes()[..], text].concat()),
                        Value::Blob(blob) => add(&[b"B", &(blob.len() as u64).to_le_bytes()[..], blob].concat()),
                    }
                }
            });
            assert_eq!(losses, Losses::default(), "{}", table.name);
            text += &format!("{} {rows} {hash:016x}\n", table.name);
        }
        text
    }

    #[test]
    fn every_value_of_every_table_is_what_sqlite_reads() {
        assert_eq!(rows(SMALL), SMALL_ROWS);
        let mut large = Vec::new();
        flate2::read::GzDecoder::new(LARGE).read_to_end(&mut large).unwrap();
        assert_eq!(rows(&large), LARGE_ROWS);
    }

    #[test]
    fn a_table_that_leads_back_to_itself_ends() {
        // Page 2 becomes an interior page whose only child is page 2.
        let mut bytes = SMALL.to_vec();
        let page = &mut bytes[512..1024];
        page.fill(0);
        page[0] = 0x05;
        page[11] = 2;
        let database = Database::open("a file", &bytes).unwrap();
        let table = StoredTable { name: "loop".to_owned(), columns: Columns::default(), root: 2 };
        let losses = database.cells(&table, |_, _, _| panic!("no row"));
        assert_eq!(losses, Losses { damaged: 1, ..Losses::default() });
    }

    #[test]
    fn a_page_with_the_same_cell_many_times_is_damaged() {
        let database = Database::open("a file", SMALL).unwrap();
        let root = database.table("CUPTI_ACTIVITY_KIND_DRIVER").unwrap().root;
        let mut bytes = SMALL.to_vec();
        let page = &mut bytes[(root as usize - 1) * 512..][..512];
        let cell = [page[8], page[9]];
        page[4] = 200;
        for pointer in page[8..408].chunks_exact_mut(2) {
            pointer.copy_from_slice(&cell);
        }
        let database = Database::open("a file", &bytes).unwrap();
        let mut rows = 0;
        let losses = database.cells(database.table("CUPTI_ACTIVITY_KIND_DRIVER").unwrap(), |_, _, _| rows += 1);
        assert!(rows <= 1, "{rows}");
        assert_eq!(losses, Losses { damaged: 1, ..Losses::default() });
    }

    fn refusal(change: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut bytes = SMALL.to_vec();
        change(&mut bytes);
        Database::open("trace.sqlite", &bytes).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_reason() {
        let refusals = [
            refusal(|bytes| bytes.clear()),
            refusal(|bytes| bytes.truncate(7)),
            refusal(|bytes| bytes.truncate(99)),
            refusal(|bytes| bytes.truncate(511)),
            refusal(|bytes| bytes[..4].copy_from_slice(b"{\"a\"")),
            refusal(|bytes| bytes[16] = 3),
            refusal(|bytes| bytes[20] = 255),
            refusal(|bytes| bytes[19] = 2),
            refusal(|bytes| bytes[19] = 9),
            refusal(|bytes| bytes[47] = 5),
            refusal(|bytes| bytes[59] = 2),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
        trace.sqlite is empty, expected a SQLite database, as `nsys export --type sqlite` writes it
        trace.sqlite is damaged at byte 7: the file ends inside its first page
        trace.sqlite is damaged at byte 99: the file ends inside its first page
        trace.sqlite is damaged at byte 511: the file ends inside its first page
        trace.sqlite is not a SQLite database, as `nsys export --type sqlite` writes it: it does not start with `SQLite format 3`
        trace.sqlite is damaged at byte 16: a page size of 768, expected a power of two from 512 to 65536
        trace.sqlite is damaged at byte 20: 257 usable bytes in a page, expected at least 480
        trace.sqlite: the database uses a write-ahead log, which is not supported
        trace.sqlite: SQLite file format 9, expected 1
        trace.sqlite: SQLite schema format 5, expected 1 to 4
        trace.sqlite: the database stores text as UTF-16, expected UTF-8
        ");
    }
}
