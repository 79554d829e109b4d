//! The operating system: distribution, kernel, C library, and what it runs in.

use types::OperatingSystem;

use super::{container, file, virtualisation};

/// Describes the system; the second part is a note on how the container was judged, where that needs one.
pub(super) fn capture() -> (OperatingSystem, Option<String>) {
    let release = file::text("/etc/os-release").or_else(|| file::text("/usr/lib/os-release")).unwrap_or_default();
    let (container, note) = container::Signs::of_this_machine().judge();
    let system = OperatingSystem {
        name: read_release(&release),
        kernel: file::text("/proc/sys/kernel/osrelease"),
        libc: c_library(),
        container,
        virtualisation: virtualisation::Signs::of_this_machine().judge(),
    };
    (system, note)
}

/// `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"`.
fn read_release(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?;
    let value = value.trim_matches(['"', '\'']).trim();
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(target_env = "gnu")]
fn c_library() -> Option<String> {
    // SAFETY: takes nothing and gives a C string with static lifetime.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", version.to_str().ok()?))
}

#[cfg(not(target_env = "gnu"))]
fn c_library() -> Option<String> {
    // musl has no way to ask for its version; that it is musl is known when this program is built.
    cfg!(target_env = "musl").then(|| "musl".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_named_as_people_name_it() {
        let text = include_str!("../../tests/fixtures/os-release-debian.txt");
        assert_eq!(read_release(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(read_release("PRETTY_NAME='Arch Linux'").as_deref(), Some("Arch Linux"));
        assert_eq!(read_release("PRETTY_NAME="), None);
        assert_eq!(read_release("NAME=x"), None);
    }
}
