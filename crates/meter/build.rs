//! Rebuilds the crate when a device file is added or removed; the files themselves are tracked where they are embedded.

fn main() {
    println!("cargo::rerun-if-changed=hardware");
}
