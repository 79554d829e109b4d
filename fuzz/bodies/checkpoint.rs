//! A checkpoint: the bytes are a safetensors file, and the same bytes an index of several. Weights come out whole, or an
//! error that names the file.

use std::path::PathBuf;
use std::sync::LazyLock;

use engine::{Checkpoint, load_weights};
use network::{Model, Preset};
use tempfile::TempDir;
use types::DType;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder for temporary files"));

static MODEL: LazyLock<Model> = LazyLock::new(|| {
    let preset = Preset::find("dummy-shallow-resnet").expect("a built-in model");
    Model::new(&preset.config().expect("its configuration"))
});

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let mut was_read = false;
    for name in ["model.safetensors", "model.safetensors.index.json"] {
        let path: PathBuf = FOLDER.path().join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        match load_weights(MODEL.blueprint(), &Checkpoint::Safetensors(path), DType::Fp32) {
            Ok(weights) => {
                assert!(weights.bytes().get() > 0);
                was_read = true;
            }
            // The file itself, or one that it names.
            Err(error) => assert!(error.to_string().contains(&*FOLDER.path().to_string_lossy()), "{error}"),
        }
    }
    was_read
}
