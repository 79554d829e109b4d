//! Pages of a database, and walks over the rows of one table.
//!
//! Format: <https://www.sqlite.org/fileformat2.html#b_tree_pages>. A walk trusts nothing: it visits a page once, takes no
//! more cells from a page than fit into it, and counts what it could not follow instead of stopping.

use super::record::varint;

const LEAF: u8 = 0x0d;
const INTERIOR: u8 = 0x05;
/// Where the first page's own content starts: after the header of the file.
const FILE_HEADER: usize = 100;

/// The bytes of a database, cut into pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pages<'a> {
    pub(crate) bytes: &'a [u8],
    /// Bytes of a page.
    pub(crate) size: usize,
    /// Bytes of a page that hold content.
    pub(crate) usable: usize,
    /// Pages the header says there are.
    pub(crate) expected: u64,
}

/// A row as stored: the part in its page, and where the rest is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    /// Number of the row.
    pub(crate) number: i64,
    local: &'a [u8],
    /// Length of the whole payload.
    size: usize,
    /// First page with the rest; zero where there is none.
    overflow: u32,
}

/// Pages already used, so that none is used twice.
#[derive(Clone, Debug)]
pub(crate) struct PageSet(Vec<u64>);

/// What a walk could not follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Pages the file should have and does not.
    pub(crate) missing: u64,
    /// Pages with a content that cannot be right.
    pub(crate) damaged: u64,
    /// Rows that could not be read.
    pub(crate) rows: u64,
}

impl Losses {
    /// Adds those of another walk.
    pub(crate) fn add(&mut self, other: Self) {
        self.missing += other.missing;
        self.damaged += other.damaged;
        self.rows += other.rows;
    }
}

impl PageSet {
    fn first_time(&mut self, page: u32) -> bool {
        let (word, bit) = (page as usize / 64, 1 << (page % 64));
        match self.0.get_mut(word) {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                true
            }
            _ => false,
        }
    }
}

impl<'a> Pages<'a> {
    /// Whole pages that are there.
    pub(crate) fn present(&self) -> u64 {
        (self.bytes.len() / self.size) as u64
    }

    /// A record of no page used so far.
    pub(crate) fn unvisited(&self) -> PageSet {
        PageSet(vec![0; self.present() as usize / 64 + 1])
    }

    fn get(&self, number: u32) -> Option<&'a [u8]> {
        let start = (number as usize).checked_sub(1)?.checked_mul(self.size)?;
        self.bytes.get(start..start.checked_add(self.size)?)
    }

    fn lose(&self, page: u32, losses: &mut Losses) {
        if u64::from(page) > self.present() && u64::from(page) <= self.expected {
            losses.missing += 1;
        } else {
            losses.damaged += 1;
        }
    }

    /// Hands every row of the table that starts at a page to `each`, in the order of their numbers.
    pub(crate) fn walk(
        &self,
        root: u32,
        visited: &mut PageSet,
        losses: &mut Losses,
        mut each: impl FnMut(Cell<'a>, &mut PageSet, &mut Losses),
    ) {
        let mut last: Option<i64> = None;
        let mut open = vec![root];
        while let Some(number) = open.pop() {
            let Some(page) = self.get(number).filter(|_| visited.first_time(number)) else {
                self.lose(number, losses);
                continue;
            };
            let header = if number == 1 { FILE_HEADER } else { 0 };
            let whole = match page[header] {
                LEAF => self.leaf(page, header, |cell| {
                    // Numbers rise throughout a table; where they do not, a pointer leads to a foreign page.
                    if last.is_some_and(|last| last >= cell.number) {
                        return false;
                    }
                    last = Some(cell.number);
                    each(cell, visited, losses);
                    true
                }),
                INTERIOR => self.interior(page, header, &mut open),
                _ => false,
            };
            if !whole {
                losses.damaged += 1;
            }
        }
    }

    /// Hands on the cells of a leaf; false where one cannot be right.
    fn leaf(&self, page: &'a [u8], header: usize, mut each: impl FnMut(Cell<'a>) -> bool) -> bool {
        let pointers = header + 8;
        let count = usize::from(short(page, header + 3));
        let mut room = self.usable.saturating_sub(pointers + 2 * count);
        for index in 0..count {
            let Some(cell) = self.cell(page, pointers + 2 * index, pointers + 2 * count) else { return false };
            let Some(left) = room.checked_sub(cell.local.len() + 2) else { return false };
            room = left;
            if !each(cell) {
                return false;
            }
        }
        true
    }

    fn cell(&self, page: &'a [u8], pointer: usize, content: usize) -> Option<Cell<'a>> {
        if pointer + 2 > self.usable {
            return None;
        }
        let at = usize::from(short(page, pointer));
        if at < content {
            return None;
        }
        let page = page.get(..self.usable)?;
        let (size, at) = varint(page, at)?;
        let (number, at) = varint(page, at)?;
        let size = usize::try_from(size).ok().filter(|size| *size <= self.bytes.len())?;
        let local_size = self.local_size(size);
        let local = page.get(at..at + local_size)?;
        let overflow = if local_size == size { 0 } else { long(page.get(at + local_size..)?)? };
        Some(Cell { number: number as i64, local, size, overflow })
    }

    /// How much of a payload stays in the page itself.
    fn local_size(&self, size: usize) -> usize {
        let most = self.usable - 35;
        if size <= most {
            return size;
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let rounded = least + (size - least) % (self.usable - 4);
        if rounded <= most { rounded } else { least }
    }

    /// Puts the children of an interior page onto the stack, the first on top; false where one cannot be right.
    fn interior(&self, page: &[u8], header: usize, open: &mut Vec<u32>) -> bool {
        let pointers = header + 12;
        let count = usize::from(short(page, header + 3));
        if pointers + 2 * count > self.usable {
            return false;
        }
        let bottom = open.len();
        for index in 0..count {
            let at = usize::from(short(page, pointers + 2 * index));
            match page[..self.usable].get(at..).and_then(long) {
                Some(child) if at >= pointers + 2 * count => open.push(child),
                _ => {
                    open.truncate(bottom);
                    return false;
                }
            }
        }
        open.extend(long(&page[header + 8..]));
        open[bottom..].reverse();
        true
    }

    /// The whole payload of a row, put together in `room` where it spans pages; `None` where a page is lost.
    pub(crate) fn payload<'b>(
        &self,
        cell: Cell<'a>,
        visited: &mut PageSet,
        losses: &mut Losses,
        room: &'b mut Vec<u8>,
    ) -> Option<&'b [u8]>
    where
        'a: 'b,
    {
        if cell.local.len() == cell.size {
            return Some(cell.local);
        }
        room.clear();
        room.extend_from_slice(cell.local);
        let mut next = cell.overflow;
        while room.len() < cell.size {
            let Some(page) = self.get(next).filter(|_| visited.first_time(next)) else {
                self.lose(next, losses);
                return None;
            };
            let take = (cell.size - room.len()).min(self.usable - 4);
            room.extend_from_slice(&page[4..4 + take]);
            next = long(page)?;
        }
        Some(room)
    }
}

#[inline]
fn short(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    }
}

/// The four bytes a slice starts with.
fn long(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|four| u32::from_be_bytes(*four))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(usable: usize) -> Pages<'static> {
        Pages { bytes: &[], size: usable, usable, expected: 0 }
    }

    #[test]
    fn long_rows_keep_in_their_page_what_the_format_says() {
        // Worked from the format: X = 4061, M = 489, K = 489 + (P - 489) % 4092.
        let pages = pages(4096);
        assert_eq!(pages.local_size(4061), 4061);
        assert_eq!(pages.local_size(4062), 489, "K would be 4062, which is more than X");
        assert_eq!(pages.local_size(5000), 489 + (5000 - 489) % 4092);
        assert_eq!(pages.local_size(4581), 489);
    }

    #[test]
    fn a_page_is_used_once() {
        let pages = Pages { bytes: &[0; 2048], size: 512, usable: 512, expected: 4 };
        let mut visited = pages.unvisited();
        assert!(visited.first_time(3));
        assert!(!visited.first_time(3));
        assert!(!visited.first_time(64 * 64));
    }
}
