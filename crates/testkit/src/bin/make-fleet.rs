//! Writes traces of a job whose troubles are known, for benchmarks.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, ranks, steps, kernels, what @ ..] = arguments.as_slice() else {
        return Err(
            "make-fleet DIR RANKS STEPS KERNELS [straggler=RANK] [slow-device=RANK] [slow-pair=RANK] [hot=RANK] \
             [missing=RANK]"
                .into(),
        );
    };
    let what: Vec<&str> = what.iter().map(String::as_str).collect();
    testkit::fleet::write(Path::new(folder), [ranks.parse()?, steps.parse()?, kernels.parse()?], &what)
}
