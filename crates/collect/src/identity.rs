//! Who and where this is, so that it can be taken out of what is passed on; and chance.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// Names by which this machine and its user are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name of the machine.
    pub host: Option<String>,
    /// Name of the user.
    pub user: Option<String>,
    /// The user's folder.
    pub home: Option<PathBuf>,
    /// The working folder.
    pub folder: Option<PathBuf>,
}

impl Identity {
    /// As the system has them now.
    pub fn now() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let line = |path: &str| Some(std::fs::read_to_string(path).ok()?.trim().to_owned());
        let host = line("/proc/sys/kernel/hostname").or_else(|| line("/etc/hostname")).or_else(|| variable("HOSTNAME"));
        Self {
            host: host.filter(|host| !host.is_empty()),
            user: variable("USER").or_else(|| variable("LOGNAME")),
            home: variable("HOME").map(PathBuf::from),
            folder: std::env::current_dir().ok(),
        }
    }
}

/// Bytes that nobody can guess.
pub fn chance() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_gives_other_bytes_each_time() {
        assert_ne!(chance().unwrap(), chance().unwrap());
    }
}
