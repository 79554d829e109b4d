//! SQLite exports of nsys, page by page: right headers, pointers, lengths and overflow chains around values that no recording has.
//! <https://www.sqlite.org/fileformat2.html>

use super::{name, number, span};
use crate::random::Random;

/// Tables with the columns they may have; `!` marks one that is always there.
const TABLES: [(&str, &[&str]); 9] = [
    ("StringIds", &["id!", "value!"]),
    (
        "CUPTI_ACTIVITY_KIND_KERNEL",
        &[
            "start!",
            "end!",
            "deviceId!",
            "contextId",
            "streamId",
            "correlationId",
            "globalPid",
            "demangledName!",
            "shortName",
            "mangledName",
            "registersPerThread",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "staticSharedMemory",
            "dynamicSharedMemory",
            "graphNodeId",
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        &["start!", "end!", "deviceId!", "streamId", "correlationId", "globalPid", "bytes", "copyKind!", "graphNodeId"],
    ),
    ("CUPTI_ACTIVITY_KIND_MEMSET", &["start!", "end!", "deviceId!", "streamId", "correlationId", "globalPid", "bytes"]),
    ("CUPTI_ACTIVITY_KIND_RUNTIME", &["start!", "end!", "globalTid!", "correlationId", "nameId!"]),
    ("NVTX_EVENTS", &["start!", "end!", "eventType!", "text!", "globalTid!", "textId", "domainId"]),
    ("TARGET_INFO_GPU", &["id", "name", "totalMemory", "uuid"]),
    ("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"]),
    ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &["start!", "end!", "deviceId!", "graphId"]),
];

/// A value of a row.
enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

/// An export.
pub(crate) fn export(random: &mut Random) -> Vec<u8> {
    let size = *random.one_of(&[512, 1024, 4096]);
    let mut pages = Pages { size, all: vec![Vec::new()] };
    let mut clock = 1_000_000;
    let mut schema = Vec::new();
    for (table, columns) in TABLES {
        if random.once_in(8) {
            continue;
        }
        let mut columns: Vec<&str> = columns
            .iter()
            .filter(|column| column.ends_with('!') || !random.once_in(5))
            .map(|column| column.trim_end_matches('!'))
            .collect();
        if random.once_in(6) {
            columns.reverse();
        }
        let rows: Vec<Vec<Value>> =
            (0..random.below(60)).map(|row| columns_of(random, &columns, row as i64, &mut clock)).collect();
        let root = pages.tree(random, &rows);
        // `INTEGER PRIMARY KEY` would be the number of the row, which nsys uses for the texts.
        let declared: Vec<String> = columns
            .iter()
            .map(|column| {
                if *column == "id" { "id INTEGER NOT NULL PRIMARY KEY".to_owned() } else { format!("{column} INTEGER") }
            })
            .collect();
        let sql = format!("CREATE TABLE {table} ({})", declared.join(", "));
        let texts = ["table", table, table].map(|text| Value::Text(text.to_owned()));
        let [kind, named, of] = texts;
        schema.push(vec![kind, named, of, Value::Integer(root as i64), Value::Text(sql)]);
    }
    pages.finish(&schema)
}

fn columns_of(random: &mut Random, columns: &[&str], row: i64, clock: &mut i64) -> Vec<Value> {
    let [start, length] = span(random, clock);
    let value = |column: &&str| match *column {
        _ if random.once_in(40) => match random.below(3) {
            0 => Value::Null,
            1 => Value::Real(number(random) as f64 / 3.0),
            _ => Value::Text("7".to_owned()),
        },
        "id" => Value::Null,
        "start" => Value::Integer(start),
        "end" => Value::Integer(start.wrapping_add(length)),
        "value" | "name" => {
            let kind = *random.one_of(&["kernel", "call", "range"]);
            Value::Text(name(random, kind).repeat(if random.once_in(20) { 40 } else { 1 }))
        }
        "text" if random.once_in(2) => Value::Text(name(random, "range").to_owned()),
        "text" => Value::Null,
        "eventType" => Value::Integer(*random.one_of(&[59, 60, 34, 75, 0])),
        "globalTid" | "globalPid" => Value::Integer((random.below(3) as i64) << 24 | random.below(3) as i64),
        "deviceId" | "copyKind" => {
            Value::Integer(if random.once_in(20) { number(random) } else { random.below(4) as i64 })
        }
        "correlationId" => Value::Integer(if random.once_in(2) { row } else { number(random) }),
        _ => Value::Integer(number(random)),
    };
    let mut value = value;
    columns.iter().map(&mut value).collect()
}

/// Pages as they are made; the first is the schema's.
struct Pages {
    size: usize,
    all: Vec<Vec<u8>>,
}

impl Pages {
    /// A tree of rows, and its root.
    fn tree(&mut self, random: &mut Random, rows: &[Vec<Value>]) -> usize {
        let (mut leaves, mut cells, mut last) = (Vec::new(), Vec::new(), 0);
        let mut number = 0;
        for row in rows {
            // Rows that were deleted leave gaps.
            number += if random.once_in(30) { 1 + random.below(1 << 20) as i64 } else { 1 };
            let cell = self.cell(number, row);
            let taken: usize = cells.iter().map(|cell: &Vec<u8>| cell.len() + 2).sum();
            if 8 + taken + cell.len() + 2 > self.size || random.once_in(40) && !cells.is_empty() {
                leaves.push((self.page(0x0d, &std::mem::take(&mut cells), None), last));
            }
            cells.push(cell);
            last = number;
        }
        let rightmost = self.page(0x0d, &cells, None);
        if leaves.is_empty() {
            return rightmost;
        }
        // Room of an interior page; what does not fit is in no tree.
        leaves.truncate((self.size - 12) / 16);
        let children: Vec<Vec<u8>> = leaves
            .iter()
            .map(|(page, last)| [&(*page as u32).to_be_bytes()[..], &varint(*last as u64)].concat())
            .collect();
        self.page(0x05, &children, Some(rightmost))
    }

    /// A page of cells; its number.
    fn page(&mut self, kind: u8, cells: &[Vec<u8>], rightmost: Option<usize>) -> usize {
        let page = self.filled(kind, cells, rightmost, 0);
        self.all.push(page);
        self.all.len()
    }

    fn filled(&self, kind: u8, cells: &[Vec<u8>], rightmost: Option<usize>, header: usize) -> Vec<u8> {
        let mut page = vec![0; self.size];
        let (mut end, mut pointer) = (self.size, header + if rightmost.is_some() { 12 } else { 8 });
        for cell in cells {
            end -= cell.len();
            page[end..end + cell.len()].copy_from_slice(cell);
            page[pointer..pointer + 2].copy_from_slice(&(end as u16).to_be_bytes());
            pointer += 2;
        }
        page[header] = kind;
        page[header + 3..header + 5].copy_from_slice(&(cells.len() as u16).to_be_bytes());
        page[header + 5..header + 7].copy_from_slice(&(end as u16).to_be_bytes());
        if let Some(rightmost) = rightmost {
            page[header + 8..header + 12].copy_from_slice(&(rightmost as u32).to_be_bytes());
        }
        page
    }

    /// A row in its page, with what does not fit in a chain of pages.
    fn cell(&mut self, number: i64, row: &[Value]) -> Vec<u8> {
        let payload = record(row);
        let head = [varint(payload.len() as u64), varint(number as u64)].concat();
        let (most, least) = (self.size - 35, (self.size - 12) * 32 / 255 - 23);
        if payload.len() <= most {
            return [head, payload].concat();
        }
        let kept = least + (payload.len() - least) % (self.size - 4);
        let kept = if kept <= most { kept } else { least };
        let (local, rest) = payload.split_at(kept);
        let first = self.all.len() + 1;
        let pieces = rest.chunks(self.size - 4);
        let count = pieces.len();
        for (place, piece) in pieces.enumerate() {
            let next = if place + 1 < count { first + place + 1 } else { 0 };
            let mut page = [&(next as u32).to_be_bytes()[..], piece].concat();
            page.resize(self.size, 0);
            self.all.push(page);
        }
        [&head, local, &(first as u32).to_be_bytes()[..]].concat()
    }

    fn finish(mut self, schema: &[Vec<Value>]) -> Vec<u8> {
        let (mut cells, mut taken) = (Vec::new(), 100 + 8);
        for (place, row) in schema.iter().enumerate() {
            let cell = self.cell(place as i64 + 1, row);
            taken += cell.len() + 2;
            // A schema of several pages is a tree, which small pages would need.
            if taken <= self.size {
                cells.push(cell);
            }
        }
        let mut first = self.filled(0x0d, &cells, None, 100);
        first[..16].copy_from_slice(b"SQLite format 3\0");
        first[16..18].copy_from_slice(&(self.size as u16).to_be_bytes());
        first[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
        first[28..32].copy_from_slice(&(self.all.len() as u32).to_be_bytes());
        first[47] = 4;
        first[59] = 1;
        self.all[0] = first;
        self.all.concat()
    }
}

/// The format of a row: its types, then its values.
fn record(row: &[Value]) -> Vec<u8> {
    let (mut types, mut values) = (Vec::new(), Vec::new());
    for value in row {
        let kind = match value {
            Value::Null => 0,
            Value::Integer(0) => 8,
            Value::Integer(number) if i16::try_from(*number).is_ok() => {
                values.extend((*number as i16).to_be_bytes());
                2
            }
            Value::Integer(number) => {
                values.extend(number.to_be_bytes());
                6
            }
            Value::Real(number) => {
                values.extend(number.to_be_bytes());
                7
            }
            Value::Text(text) => {
                values.extend(text.as_bytes());
                13 + 2 * text.len() as u64
            }
        };
        types.extend(varint(kind));
    }
    // Rows are short enough for a length of one or two bytes.
    let length = if types.len() < 127 { 1 } else { 2 };
    [varint((types.len() + length) as u64), types, values].concat()
}

/// Groups of seven bits, the largest first; a ninth byte has eight.
fn varint(number: u64) -> Vec<u8> {
    if number >> 56 != 0 {
        let high = number >> 8;
        let groups = (0..8).rev().map(|group| (high >> (7 * group)) as u8 | 0x80);
        return groups.chain([number as u8]).collect();
    }
    let groups = (64 - number.leading_zeros()).div_ceil(7).max(1);
    (0..groups).rev().map(|group| (number >> (7 * group)) as u8 & 0x7f | if group > 0 { 0x80 } else { 0 }).collect()
}
