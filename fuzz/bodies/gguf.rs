//! The header of a GGUF file: any bytes are read or refused with the name of the file, however they arrive, and no tensor is
//! larger than its type and sizes say.

use std::io::BufReader;

use ingest::gguf::{is_gguf, read};

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let size = bytes.len() as u64;
    let whole = read(bytes, size, "model.gguf");
    assert_eq!(whole, read(BufReader::with_capacity(7, bytes), size, "model.gguf"));
    match whole {
        Ok(header) => {
            assert!(is_gguf(bytes));
            // A tensor takes a name, a rank, a size, a type and an offset; a value a key and a type.
            assert!((header.tensors.len() * 28 + header.values.len() * 13) as u64 <= size);
            for tensor in &header.tensors {
                assert_eq!(tensor.dimensions.iter().product::<u64>(), tensor.elements);
                assert_eq!(tensor.elements / tensor.kind.block * tensor.kind.bytes, tensor.bytes);
            }
            true
        }
        Err(error) => {
            assert!(error.to_string().starts_with("model.gguf"), "{error}");
            false
        }
    }
}
