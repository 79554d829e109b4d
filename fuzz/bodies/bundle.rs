//! A packed run: the bytes are a bundle, and, compressed as `pack` does it, the archive inside one. Files come out as the index lists
//! them, or an error names the bundle.

use std::io::Write;
use std::path::Path;

use collect::run::Bundle;
use flate2::{Compression, GzBuilder};
use types::UserError;

fn read(bytes: &[u8]) -> bool {
    let name = Path::new("x.llmperf");
    let whole = |bytes: &[u8]| -> Result<(), UserError> {
        let mut bundle = Bundle::open(name, bytes)?;
        let listed = bundle.index().members().count();
        for file in bundle.index().members() {
            assert!(!file.path.starts_with('/') && !file.path.split('/').any(|part| matches!(part, "" | "." | "..")));
        }
        let mut files = 0;
        while let Some(most) = bundle.upcoming().map(|file| file.bytes.get()) {
            let mut held = 0_u64;
            bundle.next_file(&mut |piece| {
                held += piece.len() as u64;
                assert!(held <= most);
                Ok(())
            })?;
            assert_eq!(held, most);
            files += 1;
        }
        assert_eq!(files, listed);
        bundle.finish().map(|_| ())
    };
    let outcome = whole(bytes);
    if let Err(error) = &outcome {
        assert!(error.to_string().contains("x.llmperf"), "{error}");
    }
    outcome.is_ok()
}

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let as_it_is = read(bytes);
    // Behind the checksum, where mutations of the compressed bytes do not reach.
    let mut packed = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::fast());
    packed.write_all(bytes).expect("memory");
    let mut packed = packed.finish().expect("memory");
    packed[8] = 0;
    read(&packed) || as_it_is
}
