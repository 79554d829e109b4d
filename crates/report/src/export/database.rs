//! A SQLite file, written from its tables: pages, B-trees and records as <https://sqlite.org/fileformat2.html> has them. No
//! indices, no triggers, nothing that changes later; what the tables mean is left to others.

/// Bytes of a page. Large enough for the list of tables, which stays on the first one.
const PAGE: usize = 16_384;
const LEAF: u8 = 0x0d;
const INTERIOR: u8 = 0x05;
/// Bytes before the first page's own header.
const FILE_HEADER: usize = 100;

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

/// A file while it is filled. The first page is kept free for the list of tables.
#[derive(Debug)]
pub(super) struct Database {
    pages: Vec<u8>,
    tables: Vec<(String, String, u32)>,
}

impl Database {
    pub(super) fn new() -> Self {
        Self { pages: vec![0; PAGE], tables: Vec::new() }
    }

    /// Adds a table with its rows, which are numbered from one. A first column declared `INTEGER PRIMARY KEY` is that
    /// number, and its value in the rows is not looked at.
    pub(super) fn add<'v, const N: usize>(
        &mut self,
        name: &str,
        columns: [&str; N],
        rows: impl Iterator<Item = [Value<'v>; N]>,
    ) {
        let keyed = columns.first().is_some_and(|first| first.ends_with("PRIMARY KEY"));
        let mut leaves = Tree::default();
        let mut record = Vec::new();
        for (number, mut row) in (1i64..).zip(rows) {
            if keyed {
                row[0] = Value::Null;
            }
            encode(&row, &mut record);
            self.add_row(&mut leaves, number, &record);
        }
        let root = self.finish(leaves);
        self.tables.push((name.to_owned(), format!("CREATE TABLE {name} ({})", columns.join(", ")), root));
    }

    /// The whole file.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        let mut list = Page::new(FILE_HEADER);
        let mut record = Vec::new();
        for (number, (name, sql, root)) in (1i64..).zip(&self.tables) {
            let row = [Value::Text("table"), Value::Text(name), Value::Text(name), (*root).into(), Value::Text(sql)];
            encode(&row, &mut record);
            let mut cell = Vec::new();
            put_number(&mut cell, record.len() as u64);
            put_number(&mut cell, number as u64);
            cell.extend_from_slice(&record);
            list.push(&cell);
        }
        let count = (self.pages.len() / PAGE) as u32;
        let mut first = list.finish(LEAF, None);
        first[..16].copy_from_slice(b"SQLite format 3\0");
        first[16..18].copy_from_slice(&(PAGE as u16).to_be_bytes());
        // Read and written in the old way, no bytes reserved, and the three fractions every file has.
        first[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
        let mut word = |at: usize, value: u32| first[at..at + 4].copy_from_slice(&value.to_be_bytes());
        word(24, 1);
        word(28, count);
        word(40, 1);
        // Fourth format of schemas; text is UTF-8; valid for change 1, by a version that knows all of this.
        word(44, 4);
        word(56, 1);
        word(92, 1);
        word(96, 3_040_000);
        self.pages[..PAGE].copy_from_slice(&first);
        self.pages
    }

    fn add_row(&mut self, tree: &mut Tree, number: i64, record: &[u8]) {
        let mut cell = Vec::with_capacity(record.len().min(PAGE) + 18);
        put_number(&mut cell, record.len() as u64);
        put_number(&mut cell, number as u64);
        let local = local_bytes(record.len());
        cell.extend_from_slice(&record[..local]);
        if local < record.len() {
            let first = self.overflow(&record[local..]);
            cell.extend_from_slice(&first.to_be_bytes());
        }
        if !tree.page.fits(cell.len()) {
            self.close(tree);
        }
        tree.page.push(&cell);
        tree.last = number;
    }

    /// The part of a record that does not fit its page, in a chain of pages of its own; the first of them.
    fn overflow(&mut self, rest: &[u8]) -> u32 {
        let first = (self.pages.len() / PAGE) as u32 + 1;
        let chunks = rest.chunks(PAGE - 4);
        let count = chunks.len() as u32;
        for (place, chunk) in (0u32..).zip(chunks) {
            let next = if place + 1 < count { first + place + 1 } else { 0 };
            self.pages.extend_from_slice(&next.to_be_bytes());
            self.pages.extend_from_slice(chunk);
            self.pages.resize(self.pages.len().next_multiple_of(PAGE), 0);
        }
        first
    }

    /// Writes the leaf that is open and remembers it with its last row.
    fn close(&mut self, tree: &mut Tree) {
        let page = std::mem::replace(&mut tree.page, Page::new(0)).finish(LEAF, None);
        self.pages.extend_from_slice(&page);
        tree.leaves.push(((self.pages.len() / PAGE) as u32, tree.last));
    }

    /// Closes a tree, level by level; its root.
    fn finish(&mut self, mut tree: Tree) -> u32 {
        self.close(&mut tree);
        let mut level = tree.leaves;
        while level.len() > 1 {
            let mut above = Vec::new();
            let mut children = level.into_iter().peekable();
            while let Some((first, last)) = children.next() {
                let mut page = Page::new(0);
                let (mut right, mut key) = (first, last);
                while let Some((child, child_key)) = children.peek().copied() {
                    let mut cell = right.to_be_bytes().to_vec();
                    put_number(&mut cell, key as u64);
                    if !page.fits_interior(cell.len()) {
                        break;
                    }
                    page.push(&cell);
                    (right, key) = (child, child_key);
                    children.next();
                }
                let bytes = page.finish(INTERIOR, Some(right));
                self.pages.extend_from_slice(&bytes);
                above.push(((self.pages.len() / PAGE) as u32, key));
            }
            level = above;
        }
        level.first().map_or(0, |(root, _)| *root)
    }
}

/// A table's leaves while they are written.
#[derive(Default)]
struct Tree {
    page: Page,
    last: i64,
    /// Page and last row of each.
    leaves: Vec<(u32, i64)>,
}

/// A page while it is filled: cells from its end, their places from its start.
struct Page {
    /// Bytes before its header.
    before: usize,
    cells: Vec<Vec<u8>>,
    used: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Page {
    fn new(before: usize) -> Self {
        Self { before, cells: Vec::new(), used: 0 }
    }

    fn room(&self, header: usize, cell: usize) -> bool {
        self.before + header + 2 * (self.cells.len() + 1) + self.used + cell <= PAGE
    }

    fn fits(&self, cell: usize) -> bool {
        self.room(8, cell)
    }

    fn fits_interior(&self, cell: usize) -> bool {
        self.room(12, cell)
    }

    fn push(&mut self, cell: &[u8]) {
        self.used += cell.len();
        self.cells.push(cell.to_vec());
    }

    fn finish(self, kind: u8, right: Option<u32>) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        let header = if right.is_some() { 12 } else { 8 };
        let mut end = PAGE;
        for (place, cell) in self.cells.iter().enumerate() {
            end -= cell.len();
            page[end..end + cell.len()].copy_from_slice(cell);
            let at = self.before + header + 2 * place;
            page[at..at + 2].copy_from_slice(&(end as u16).to_be_bytes());
        }
        let at = self.before;
        page[at] = kind;
        page[at + 3..at + 5].copy_from_slice(&(self.cells.len() as u16).to_be_bytes());
        page[at + 5..at + 7].copy_from_slice(&(end as u16).to_be_bytes());
        if let Some(right) = right {
            page[at + 8..at + 12].copy_from_slice(&right.to_be_bytes());
        }
        page
    }
}

/// How much of a record stays on its leaf.
fn local_bytes(length: usize) -> usize {
    const MOST: usize = PAGE - 35;
    const LEAST: usize = (PAGE - 12) * 32 / 255 - 23;
    if length <= MOST {
        return length;
    }
    let kept = LEAST + (length - LEAST) % (PAGE - 4);
    if kept <= MOST { kept } else { LEAST }
}

/// A row as a record: a header with the type of each value, then the values.
fn encode(row: &[Value<'_>], record: &mut Vec<u8>) {
    let mut header = Vec::with_capacity(row.len() + 2);
    for value in row {
        put_number(
            &mut header,
            match value {
                Value::Null => 0,
                Value::Integer(number) => integer(*number).0,
                Value::Text(text) => 13 + 2 * text.len() as u64,
            },
        );
    }
    record.clear();
    // The length counts itself; more than 126 bytes of header would need a second one.
    let own = if header.len() + 1 < 128 { 1 } else { 2 };
    put_number(record, (header.len() + own) as u64);
    record.extend_from_slice(&header);
    for value in row {
        match value {
            Value::Null => {}
            Value::Integer(number) => {
                let bytes = number.to_be_bytes();
                record.extend_from_slice(&bytes[8 - integer(*number).1..]);
            }
            Value::Text(text) => record.extend_from_slice(text.as_bytes()),
        }
    }
}

/// Type and bytes of an integer.
fn integer(number: i64) -> (u64, usize) {
    let fits = |bits: u32| (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&number);
    match number {
        0 => (8, 0),
        1 => (9, 0),
        _ if fits(8) => (1, 1),
        _ if fits(16) => (2, 2),
        _ if fits(24) => (3, 3),
        _ if fits(32) => (4, 4),
        _ if fits(48) => (5, 6),
        _ => (6, 8),
    }
}

/// Seven bits a byte, highest first; nine bytes hold all of 64 bits.
fn put_number(out: &mut Vec<u8>, number: u64) {
    if number >> 56 != 0 {
        for shift in (8..64).step_by(7).rev() {
            out.push((number >> shift) as u8 | 0x80);
        }
        out.push(number as u8);
        return;
    }
    let length = (64 - number.leading_zeros()).div_ceil(7).max(1);
    for place in (0..length).rev() {
        let more = if place > 0 { 0x80 } else { 0 };
        out.push((number >> (7 * place)) as u8 & 0x7f | more);
    }
}
