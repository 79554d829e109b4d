//! Inputs made from a grammar instead of a seed: whole files whose parts agree with each other (lengths, pointers, ids that join) and
//! whose values and shapes no recording ever had.

pub(crate) mod database;
pub(crate) mod kineto;
pub(crate) mod ncu;
pub(crate) mod recording;

use crate::random::Random;

/// A number as recordings have it: mostly small, so that ids meet; sometimes at an edge of a type.
fn number(random: &mut Random) -> i64 {
    const EDGES: [i64; 12] = [
        0,
        -1,
        i64::MIN,
        i64::MAX,
        1 << 62,
        (1 << 61) + 1,
        1 << 53,
        (1 << 53) - 1,
        1 << 32,
        u32::MAX as i64,
        i32::MAX as i64,
        i32::MIN as i64,
    ];
    if random.once_in(24) { *random.one_of(&EDGES) } else { random.below(40) as i64 }
}

/// A time and a length. Instants meet often: intervals that touch, contain each other and are empty are where sums go wrong.
fn span(random: &mut Random, clock: &mut i64) -> [i64; 2] {
    *clock = clock.saturating_add(*random.one_of(&[0, 0, 1, 10, 1_000, 1_000_000, -500]));
    let length = *random.one_of(&[0, 1, 10, 10, 1_000, 50_000, 1_000_000_000, 1 << 40]);
    match random.below(60) {
        0 => [number(random), length],
        1 => [*clock, number(random)],
        _ => [*clock, length],
    }
}

/// Names that a rule of the analysis looks for, beside some that none does.
const NAMES: &str = include_str!("names.txt");

fn name<'a>(random: &mut Random, kind: &str) -> &'a str {
    let names: Vec<&'a str> = NAMES.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(": ")).collect();
    random.one_of::<&str>(&names)
}
