//! Texts an export refers to by number. Most of them nobody asks for (paths, logs, the environment): a text is looked at
//! when a row that is kept refers to it, and not before.

use types::timeline::{NameId, Table};

use super::schema;
use crate::IngestError;
use crate::nsys::database::{Cell, Database, Layout, Losses, PageSet};

/// The table of texts, and the names of a timeline it becomes.
pub(crate) struct Strings<'a> {
    database: &'a Database<'a>,
    layout: Layout<2>,
    /// Rows by rising number.
    rows: Vec<(Cell<'a>, Option<NameId>)>,
    visited: PageSet,
    room: Vec<u8>,
    /// Every text of the timeline.
    pub(crate) names: Table<str>,
    /// What was lost of the table.
    pub(crate) losses: Losses,
    /// References to texts that are not there.
    pub(crate) missing: u64,
    /// Texts that are not UTF-8.
    pub(crate) garbled: u64,
}

impl<'a> Strings<'a> {
    /// Finds where the texts are.
    pub(crate) fn open(file: &str, database: &'a Database<'a>) -> Result<Self, IngestError> {
        let mut rows = Vec::new();
        let mut losses = Losses::default();
        let mut layout = Layout::new([None, None], None);
        if let Some((table, found)) = schema::STRINGS.find(file, database)? {
            losses = database.cells(table, |cell, _, _| rows.push((cell, None)));
            layout = found;
        }
        let visited = database.pages.unvisited();
        let (names, room) = (Table::default(), Vec::new());
        Ok(Self { database, layout, rows, visited, room, names, losses, missing: 0, garbled: 0 })
    }

    /// The name of a text given by number; `None`, and counted, where there is no such text.
    pub(crate) fn find(&mut self, number: i64) -> Option<NameId> {
        let found = self.find_if_there(number);
        self.missing += u64::from(found.is_none());
        found
    }

    /// The same for a text that nothing depends on; not counted where it is missing.
    pub(crate) fn find_if_there(&mut self, number: i64) -> Option<NameId> {
        let index = self.index(number)?;
        let (cell, name) = self.rows[index];
        if name.is_some() {
            return name;
        }
        let payload = self.database.pages.payload(cell, &mut self.visited, &mut self.losses, &mut self.room);
        let row = payload.and_then(|payload| self.layout.decode(cell.number, payload).ok());
        let Some(Ok(Some(text))) = row.map(|[_, text]| text.text()) else { return None };
        let name = place(&mut self.names, text, &mut self.garbled);
        self.rows[index].1 = Some(name);
        Some(name)
    }

    /// Numbers count up without a gap in every export seen, so the place follows from the number.
    fn index(&self, number: i64) -> Option<usize> {
        let first = self.rows.first()?.0.number;
        let guess = usize::try_from(number.checked_sub(first)?).ok()?;
        match self.rows.get(guess) {
            Some((cell, _)) if cell.number == number => Some(guess),
            _ => self.rows.binary_search_by_key(&number, |(cell, _)| cell.number).ok(),
        }
    }

    /// The name of a text given in the row itself.
    pub(crate) fn place(&mut self, text: &[u8]) -> NameId {
        place(&mut self.names, text, &mut self.garbled)
    }

    /// What stands where a text is lost.
    pub(crate) fn unknown(&mut self) -> NameId {
        self.names.place("(name lost)")
    }
}

fn place(names: &mut Table<str>, text: &[u8], garbled: &mut u64) -> NameId {
    match std::str::from_utf8(text) {
        Ok(text) => names.place(text),
        Err(_) => {
            *garbled += 1;
            names.place(&*String::from_utf8_lossy(text))
        }
    }
}
