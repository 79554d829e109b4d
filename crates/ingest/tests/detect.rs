//! Formats of real files, found by their first bytes, compressed or not.

use std::io::{Read, Write};
use std::path::PathBuf;

use llm_perf_ingest::compressed::Compression;
use llm_perf_ingest::detect::{Detection, Format, detect, identify};

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures")).join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn plain(bytes: &[u8]) -> Vec<u8> {
    let Some(compression) = Compression::of(bytes) else { return bytes.to_vec() };
    let mut plain = Vec::new();
    compression.decoder(bytes).read_to_end(&mut plain).unwrap();
    plain
}

fn packed(bytes: &[u8]) -> [Vec<u8>; 2] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    let zstandard = ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
    [gzip.finish().unwrap(), zstandard]
}

/// Every format with a real file.
const FILES: &[(&str, Format)] = &[
    ("torch/small.json", Format::TorchProfiler),
    ("torch/dsocr-h200.json.gz", Format::TorchProfiler),
    ("torchinfo-unique-layers.json", Format::TorchInfo),
    ("nsys/small.sqlite", Format::NsysSqlite),
    ("nsys_stats/nsys-dsocr-cuda_gpu_kern_sum.csv", Format::NsysStats),
    ("nsys_stats/nsys-dsocr-nvtx_gpu_proj_sum.csv", Format::NsysStats),
    ("ncu/ncu-range-nested-raw.csv", Format::NcuRaw),
    ("ncu/ncu-dsocr-roofline-details.csv.gz", Format::NcuDetails),
    ("ncu/ncu-no-range.log", Format::NcuLog),
];

#[test]
fn real_files_are_known_plain_and_compressed() {
    for (name, format) in FILES {
        let bytes = plain(&fixture(name));
        assert_eq!(identify(&bytes).format, Some(*format), "{name}");
        let head = &bytes[..bytes.len().min(1 << 16)];
        for (file, compression) in packed(head).iter().zip([Compression::Gzip, Compression::Zstandard]) {
            let identity = identify(file);
            assert_eq!((identity.compression, identity.format), (Some(compression), Some(*format)), "{name}");
        }
    }
}

#[test]
fn more_bytes_never_turn_one_format_into_another() {
    for (name, format) in FILES {
        let bytes = plain(&fixture(name));
        for length in 0..bytes.len().min(4096) {
            let answer = detect(&bytes[..length], false);
            assert!(matches!(answer, Detection::NeedMore) || answer == Detection::Known(*format), "{name}: {answer:?}");
        }
    }
}
