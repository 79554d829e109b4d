//! A baseline JPEG encoder for small pictures, after ITU-T T.81: colours in full resolution, the tables of its annex K.

use super::RgbImage;

/// Share of the example's steps between levels, in percent: the quality that most encoders call 70.
const COARSENESS: u32 = 60;

/// Elements of a block in the order they are written: along the diagonals, low frequencies first.
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// Steps between levels of brightness, row by row (table K.1).
const BRIGHTNESS_STEPS: [u32; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51,
    87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101,
    72, 92, 95, 98, 112, 100, 103, 99,
];

/// Steps between levels of colour in the upper left of a block; all others are `COLOUR_STEP` (table K.2).
const COLOUR_STEPS: [[u32; 4]; 4] = [[17, 18, 24, 47], [18, 21, 26, 66], [24, 26, 56, 99], [47, 66, 99, 99]];
const COLOUR_STEP: u32 = 99;

/// How many codes there are of each length from one bit on, and what they stand for (tables K.3 and K.5). The tables of
/// brightness serve colour too.
const MEAN_LENGTHS: [u8; 16] = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
const MEAN_SYMBOLS: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const WAVE_LENGTHS: [u8; 16] = [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125];
const WAVE_SYMBOLS: &[u8; 162] = b"\
\x01\x02\x03\x00\x04\x11\x05\x12\x21\x31\x41\x06\x13\x51\x61\x07\x22\x71\x14\x32\x81\x91\xa1\x08\x23\x42\xb1\xc1\x15\x52\
\xd1\xf0\x24\x33\x62\x72\x82\x09\x0a\x16\x17\x18\x19\x1a\x25\x26\x27\x28\x29\x2a\x34\x35\x36\x37\x38\x39\x3a\x43\x44\x45\
\x46\x47\x48\x49\x4a\x53\x54\x55\x56\x57\x58\x59\x5a\x63\x64\x65\x66\x67\x68\x69\x6a\x73\x74\x75\x76\x77\x78\x79\x7a\x83\
\x84\x85\x86\x87\x88\x89\x8a\x92\x93\x94\x95\x96\x97\x98\x99\x9a\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xb2\xb3\xb4\xb5\xb6\
\xb7\xb8\xb9\xba\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xda\xe1\xe2\xe3\xe4\xe5\xe6\xe7\xe8\
\xe9\xea\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa";
/// Nothing but zeros up to the end of a block, and sixteen zeros.
const END_OF_BLOCK: u8 = 0x00;
const SIXTEEN_ZEROS: u8 = 0xf0;

/// A code and its length in bits, by what it stands for.
type Codes = [(u32, u32); 256];

/// The file of an image of at most 65,535 pixels along a side.
pub(super) fn encode(image: &RgbImage) -> Vec<u8> {
    let colour_step =
        |place: usize| COLOUR_STEPS.get(place / 8).and_then(|row| row.get(place % 8)).unwrap_or(&COLOUR_STEP);
    let scaled = |step: u32| ((step * COARSENESS + 50) / 100).clamp(1, 255);
    let steps = [
        std::array::from_fn(|place| scaled(BRIGHTNESS_STEPS[place])),
        std::array::from_fn(|place| scaled(*colour_step(place))),
    ];
    let mut file = header(image, &steps);
    let (means, waves) = (codes(&MEAN_LENGTHS, &MEAN_SYMBOLS), codes(&WAVE_LENGTHS, WAVE_SYMBOLS));
    let waveforms = waveforms();
    let mut bits = Bits { file: &mut file, pending: 0, count: 0 };
    let mut before = [0i32; 3];
    for top in (0..image.height() as usize).step_by(8) {
        for left in (0..image.width() as usize).step_by(8) {
            let block = block(image, left, top);
            for (channel, before) in before.iter_mut().enumerate() {
                let values = block.map(|pixel| pixel[channel]);
                let waves_found = transformed(&values, &waveforms);
                let whole =
                    ZIGZAG.map(|place| (waves_found[place] / steps[channel.min(1)][place] as f32).round() as i32);
                bits.block(&whole, std::mem::replace(before, whole[0]), &means, &waves);
            }
        }
    }
    bits.finish();
    file.extend([0xff, 0xd9]);
    file
}

/// All that stands before the blocks.
fn header(image: &RgbImage, steps: &[[u32; 64]; 2]) -> Vec<u8> {
    let mut file = vec![0xff, 0xd8];
    let mut segment = |kind: u8, parts: &[&[u8]]| {
        let length = 2 + parts.iter().map(|part| part.len()).sum::<usize>();
        file.extend([0xff, kind]);
        file.extend((length as u16).to_be_bytes());
        parts.iter().for_each(|part| file.extend_from_slice(part));
    };
    segment(0xe0, &[b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"]);
    for (table, steps) in steps.iter().enumerate() {
        segment(0xdb, &[&[table as u8], &ZIGZAG.map(|place| steps[place] as u8)]);
    }
    let (high, wide) = ((image.height() as u16).to_be_bytes(), (image.width() as u16).to_be_bytes());
    // Eight bits; three channels, none of them coarser than another, with their tables of steps.
    segment(0xc0, &[&[8], &high, &wide, &[3, 1, 0x11, 0, 2, 0x11, 1, 3, 0x11, 1]]);
    segment(0xc4, &[&[0x00], &MEAN_LENGTHS, &MEAN_SYMBOLS]);
    segment(0xc4, &[&[0x10], &WAVE_LENGTHS, WAVE_SYMBOLS]);
    segment(0xda, &[&[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]]);
    file
}

/// Brightness, blue and red of eight by eight pixels, around zero; what lies outside of the image repeats its edge.
fn block(image: &RgbImage, left: usize, top: usize) -> [[f32; 3]; 64] {
    let (wide, high) = (image.width() as usize, image.height() as usize);
    std::array::from_fn(|place| {
        let (x, y) = ((left + place % 8).min(wide - 1), (top + place / 8).min(high - 1));
        let pixel = &image.levels()[(y * wide + x) * 3..][..3];
        let [red, green, blue] = [0, 1, 2].map(|channel: usize| f32::from(pixel[channel]));
        // JFIF 1.02: the weights of ITU-R BT.601, at full range.
        let brightness = 0.299 * red + 0.587 * green + 0.114 * blue;
        [brightness - 128.0, (blue - brightness) / 1.772, (red - brightness) / 1.402]
    })
}

/// Row n is the n-th cosine of the transform at eight places.
fn waveforms() -> [[f32; 8]; 8] {
    std::array::from_fn(|wave| {
        let size = if wave == 0 { 0.125f32.sqrt() } else { 0.5 };
        let angle = |place: usize| (2 * place + 1) as f32 * wave as f32 * std::f32::consts::PI / 16.0;
        std::array::from_fn(|place| size * angle(place).cos())
    })
}

/// How much of each wave is in a block: along the rows, then along the columns.
fn transformed(values: &[f32; 64], waveforms: &[[f32; 8]; 8]) -> [f32; 64] {
    let sum = |wave: usize, value: &dyn Fn(usize) -> f32| (0..8).map(|at| waveforms[wave][at] * value(at)).sum::<f32>();
    let rows: [f32; 64] = std::array::from_fn(|place| sum(place % 8, &|at| values[place / 8 * 8 + at]));
    std::array::from_fn(|place| sum(place / 8, &|at| rows[at * 8 + place % 8]))
}

/// Codes count upwards within a length, and go on with a zero behind them at the next.
fn codes(lengths: &[u8; 16], symbols: &[u8]) -> Codes {
    let mut codes = [(0, 0); 256];
    let (mut code, mut symbols) = (0, symbols.iter());
    for (bits, count) in (1..).zip(lengths) {
        for symbol in symbols.by_ref().take(usize::from(*count)) {
            codes[usize::from(*symbol)] = (code, bits);
            code += 1;
        }
        code <<= 1;
    }
    codes
}

/// Bits on their way into a file.
struct Bits<'a> {
    file: &'a mut Vec<u8>,
    pending: u32,
    count: u32,
}

impl Bits<'_> {
    /// One block, whose mean is written as the difference from the one before.
    fn block(&mut self, values: &[i32; 64], before: i32, means: &Codes, waves: &Codes) {
        self.number(values[0] - before, 0, means);
        let last = values.iter().rposition(|value| *value != 0).unwrap_or(0);
        let mut zeros = 0;
        for value in &values[1..=last] {
            if *value == 0 {
                zeros += 1;
                continue;
            }
            for _ in 0..zeros / 16 {
                self.push(waves[usize::from(SIXTEEN_ZEROS)]);
            }
            self.number(*value, zeros % 16, waves);
            zeros = 0;
        }
        if last < 63 {
            self.push(waves[usize::from(END_OF_BLOCK)]);
        }
    }

    /// The zeros before a number and its length in one code, then the number; negative ones less one.
    fn number(&mut self, value: i32, zeros: usize, codes: &Codes) {
        let length = 32 - value.unsigned_abs().leading_zeros();
        self.push(codes[zeros << 4 | length as usize]);
        let bits = if value < 0 { value - 1 } else { value };
        self.push((bits as u32 & ((1 << length) - 1), length));
    }

    fn push(&mut self, (code, length): (u32, u32)) {
        self.pending = self.pending << length | code;
        self.count += length;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.pending >> self.count) as u8;
            self.file.push(byte);
            // What looks like a mark is followed by a zero.
            if byte == 0xff {
                self.file.push(0);
            }
        }
    }

    /// Fills the last byte with ones.
    fn finish(mut self) {
        self.push((0x7f, 7));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::decode;

    #[test]
    fn a_decoder_of_others_reads_what_was_written() {
        for (wide, high) in [(1, 1), (8, 8), (17, 9), (64, 40)] {
            let level = |index: usize| {
                let (x, y) = (index / 3 % wide, index / 3 / wide);
                [x * 3, y * 5, 200 - x - y][index % 3] as u8
            };
            let image = RgbImage::from_levels(wide, high, (0..wide * high * 3).map(level).collect());
            let again = decode("again", &encode(&image)).unwrap();
            assert_eq!(again.page(), image.page());
            let off = image.levels().iter().zip(again.levels()).map(|(ours, theirs)| ours.abs_diff(*theirs));
            assert!(off.clone().max() <= Some(16), "{wide} x {high}: {:?}", off.max());
        }
    }

    #[test]
    fn noise_with_all_lengths_of_numbers_is_written_whole() {
        let noise = (0..48 * 48 * 3).map(|index: u32| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let image = RgbImage::from_levels(48, 48, noise);
        let again = decode("noise", &encode(&image)).unwrap();
        let off = image.levels().iter().zip(again.levels()).map(|(ours, theirs)| u64::from(ours.abs_diff(*theirs)));
        let mean = off.sum::<u64>() / (48 * 48 * 3);
        assert!(mean < 32, "off by {mean} on average");
    }

    #[test]
    fn a_grey_image_stays_grey() {
        let again = decode("grey", &encode(&RgbImage::filled(20, 20, 77))).unwrap();
        assert!(again.levels().iter().all(|level| level.abs_diff(77) <= 2));
    }
}
