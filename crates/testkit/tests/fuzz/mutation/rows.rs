//! Changes of a text of rows and cells: pages of Nsight Compute, tables of `nsys stats`, files of YAML.

use super::bytes;
use crate::random::Random;

/// A text after one to six changes; in one of eight cases its bytes are damaged as well.
pub(crate) fn mutated(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(seed);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(6) {
        change(random, &mut lines);
    }
    let text = lines.join("\n") + if random.once_in(4) { "" } else { "\n" };
    if random.once_in(8) { bytes::mutated(random, text.as_bytes()) } else { text.into_bytes() }
}

fn change(random: &mut Random, lines: &mut Vec<String>) {
    if lines.is_empty() {
        return;
    }
    let (at, other) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(8) {
        0 => lines.swap(at, other),
        1 => drop(lines.remove(at)),
        2 => {
            let copies = vec![lines[at].clone(); 1 + random.below(20)];
            lines.splice(other..other, copies);
        }
        3 => lines[at] = String::new(),
        _ => cell(random, &mut lines[at]),
    }
}

fn cell(random: &mut Random, line: &mut String) {
    let between = ["\",\"", ",", ": ", "=", "\t"].into_iter().find(|between| line.contains(between)).unwrap_or(" ");
    let mut cells: Vec<String> = line.split(between).map(str::to_owned).collect();
    let (at, other) = (random.below(cells.len()), random.below(cells.len()));
    match random.below(6) {
        0 => cells.swap(at, other),
        1 => drop(cells.remove(at)),
        2 => cells.insert(at, cells[other].clone()),
        3 => cells[at] = format!("-{}", cells[at]),
        4 => cells[at] = bytes::name(random),
        _ => cells[at] = (*random.one_of(&bytes::STRANGE)).to_owned(),
    }
    *line = cells.join(between);
}
