//! Rebuilds when a configuration file is added; `include_dir!` alone only notices changes to the files it has seen.

fn main() {
    println!("cargo::rerun-if-changed=../../conf");
}
