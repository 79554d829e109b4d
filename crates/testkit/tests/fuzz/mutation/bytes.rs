//! Changes that know nothing of a format.

use crate::random::Random;

/// One to eight changes of any bytes.
pub(crate) fn mutated(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(8) {
        change(random, &mut bytes);
    }
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>) {
    let (at, other) = (random.below(bytes.len()), random.below(bytes.len()));
    let piece = |random: &mut Random, bytes: &[u8]| {
        let end = (at + 1 + random.below(64)).min(bytes.len());
        bytes[at.min(end)..end].to_vec()
    };
    match random.below(8) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        1 if !bytes.is_empty() => {
            bytes[at] = *random.one_of(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'-', b'9', b'\n', b'{', b'}'])
        }
        2 => bytes.truncate(at),
        3 => {
            let copied = piece(random, bytes);
            bytes.splice(other..other, copied);
        }
        4 => {
            let removed = piece(random, bytes).len();
            bytes.drain(at.min(bytes.len())..(at + removed).min(bytes.len()));
        }
        5 => {
            let added = vec![*random.one_of(b"[{\"0,\n\0\xff"); 1 + random.below(300)];
            bytes.splice(at..at, added);
        }
        6 if !bytes.is_empty() => bytes.swap(at, other),
        _ => bytes.extend_from_slice(&random.number().to_le_bytes()),
    }
}

/// A name that asks for more than its length: nested templates, mangled names that repeat themselves, brackets that do not end.
pub(crate) fn name(random: &mut Random) -> String {
    // Quadratic time shows in a long name alone.
    let longer = if random.once_in(40) { 60 } else { 1 };
    let (times, piece) = (longer * (1 + random.below(400)), |piece: &str, times: usize| piece.repeat(times));
    match random.below(7) {
        0 => format!("{}{}", piece("at::f<", times), piece(">", random.below(times + 1))),
        1 => format!("_Z1fI{}{}Evv", piece("S0_I", times), piece("E", times)),
        2 => format!("_Z1f{}{}", piece("1aI", times), piece("iE", times)),
        3 => format!("_Z1fN{}EvPK{}", piece("3abc", times), piece("S_PS0_", times)),
        4 => format!("({}", piece("(anonymous namespace)::[", times)),
        5 => {
            let mark = *random.one_of(&["T0", "S1", "Li1", "7", "Dp", "1aI"]);
            format!("_Z1f{}", piece(mark, times))
        }
        _ => piece("x", 1 + random.below(4000)),
    }
}

/// Text that no format expects and every format has to bear.
pub(crate) const STRANGE: [&str; 14] = [
    "",
    "-1",
    "0",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1e308",
    "-1e400",
    "NaN",
    "null",
    "1,5",
    "\u{202e}\u{1b}[2J",
    "=HYPERLINK(\"x\")",
    "\u{0}",
];
