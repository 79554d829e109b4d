//! Changes of a SQLite file by what it is made of: header, pages, pointers to cells, cells.
//! <https://www.sqlite.org/fileformat2.html>

use super::bytes;
use crate::random::Random;

/// Bytes of the header of a file.
const HEADER: usize = 100;

/// A file after one to six changes.
pub(crate) fn mutated(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut file = seed.to_vec();
    for _ in 0..=random.below(6) {
        let size = usize::from(u16::from_be_bytes([seed[16], seed[17]])).clamp(512, seed.len());
        change(random, &mut file, size);
    }
    if random.once_in(8) { bytes::mutated(random, &file) } else { file }
}

fn change(random: &mut Random, file: &mut Vec<u8>, size: usize) {
    let pages = file.len() / size;
    if pages == 0 {
        return;
    }
    let (page, other) = (random.below(pages), random.below(pages));
    let start = page * size;
    // The first page begins behind the header of the file.
    let tree = start + if page == 0 { HEADER } else { 0 };
    match random.below(8) {
        0 => {
            let copy = file[start..start + size].to_vec();
            file[other * size..(other + 1) * size].copy_from_slice(&copy);
        }
        1 if page != other => {
            let (low, high) = (page.min(other) * size, page.max(other) * size);
            let (before, after) = file.split_at_mut(high);
            before[low..low + size].swap_with_slice(&mut after[..size]);
        }
        2 => {
            let at = 16 + random.below(HEADER - 16);
            file[at] = strange(random);
        }
        // Kind of the page, first free block, number of cells, start of the cells, fragments, right-most child.
        3 => file[tree + random.below(12)] = strange(random),
        4 => {
            let cells = usize::from(u16::from_be_bytes([file[tree + 3], file[tree + 4]])).min(size / 4);
            let header = if file[tree] == 5 || file[tree] == 2 { 12 } else { 8 };
            let pointer = (tree + header + 2 * random.below(cells)).min(start + size - 2);
            let target = random.below(size) as u16;
            file[pointer..pointer + 2].copy_from_slice(&target.to_be_bytes());
        }
        // A cell: its length, its row, and the types of its columns are in its first bytes.
        5 => {
            let at = usize::from(u16::from_be_bytes([file[tree + 5], file[tree + 6]])).clamp(8, size - 1);
            let at = start + (at + random.below(24)).min(size - 1);
            file[at] = strange(random);
        }
        6 => file.truncate(start + random.below(size)),
        _ => {
            let at = start + random.below(size);
            file[at] ^= 1 << random.below(8);
        }
    }
}

fn strange(random: &mut Random) -> u8 {
    *random.one_of(&[0, 1, 2, 5, 10, 13, 0x7f, 0x80, 0x81, 0xfe, 0xff])
}
