//! Who writes a run, and whether they still live.
//!
//! A process id alone says little: ids are reused, and another boot or container has its own. So a process is known by its
//! id, the tick it started at, the boot and the namespace the id belongs to. This file knows Linux; elsewhere the answer is
//! that nobody can tell.

use std::fs;

use types::ProcessIdentity;

/// Whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Liveness {
    Alive,
    Gone(&'static str),
    Unknown(&'static str),
}

/// What is seen under a process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sighting {
    /// A process, as `/proc/PID/stat` describes it.
    Process { state: char, start_ticks: u64 },
    /// A process of another user that `/proc` does not show (mount option `hidepid`).
    Hidden,
    /// Nothing.
    Nothing,
}

const GONE: &str = "its process ended without finishing the run";

/// This process.
pub(super) fn current() -> ProcessIdentity {
    let pid = std::process::id();
    ProcessIdentity { pid, start_ticks: start_ticks(pid), boot_id: boot_id(), pid_namespace: pid_namespace() }
}

/// Whether that process still runs, as far as it can be seen from here.
pub(super) fn liveness(process: &ProcessIdentity) -> Liveness {
    judge(process, boot_id().as_deref(), pid_namespace().as_deref(), look(process.pid))
}

fn judge(process: &ProcessIdentity, boot_here: Option<&str>, namespace_here: Option<&str>, seen: Sighting) -> Liveness {
    let (Some(boot), Some(boot_here)) = (process.boot_id.as_deref(), boot_here) else {
        return Liveness::Unknown("the system does not report a boot id");
    };
    if boot != boot_here {
        return Liveness::Gone("its process is from an earlier boot or another machine");
    }
    match (process.pid_namespace.as_deref(), namespace_here) {
        (Some(namespace), Some(here)) if namespace != here => {
            return Liveness::Unknown("its process runs in another container and is not visible from here");
        }
        _ => {}
    }
    match (seen, process.start_ticks) {
        (Sighting::Nothing, _) => Liveness::Gone(GONE),
        // A zombie has ended; only its parent has not asked how yet.
        (Sighting::Process { state: 'Z' | 'X' | 'x', .. }, _) => Liveness::Gone(GONE),
        (Sighting::Process { start_ticks, .. }, Some(recorded)) if start_ticks != recorded => Liveness::Gone(GONE),
        (Sighting::Process { .. }, Some(_)) => Liveness::Alive,
        (Sighting::Process { .. }, None) => Liveness::Unknown("the start time of its process was not recorded"),
        (Sighting::Hidden, _) => Liveness::Unknown("its process id belongs to another user and is hidden"),
    }
}

fn boot_id() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
}

fn pid_namespace() -> Option<String> {
    fs::read_link("/proc/self/ns/pid").ok()?.into_os_string().into_string().ok()
}

fn start_ticks(pid: u32) -> Option<u64> {
    match look(pid) {
        Sighting::Process { start_ticks, .. } => Some(start_ticks),
        Sighting::Hidden | Sighting::Nothing => None,
    }
}

fn look(pid: u32) -> Sighting {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok();
    match stat.and_then(|stat| parse_stat(&String::from_utf8_lossy(&stat))) {
        Some(process) => process,
        None if is_hidden(pid) => Sighting::Hidden,
        None => Sighting::Nothing,
    }
}

/// Whether the kernel knows the process although `/proc` does not show it.
fn is_hidden(pid: u32) -> bool {
    match libc::pid_t::try_from(pid) {
        Ok(pid) if pid > 0 => {
            // SAFETY: signal 0 is delivered to nobody; the call only asks whether the process exists.
            let answer = unsafe { libc::kill(pid, 0) };
            answer == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
        }
        _ => false,
    }
}

/// proc(5): `pid (name) state ...`, where the name may hold spaces and parentheses; the start is field 22.
fn parse_stat(stat: &str) -> Option<Sighting> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let start_ticks = fields.nth(22 - 4)?.parse().ok()?;
    Some(Sighting::Process { state, start_ticks })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const STAT: &str =
        "48 (a) R (b) S 1 48 48 0 -1 4194304 90 0 0 0 1 2 0 0 20 0 1 0 777 2777088 229 18446744073709551615";

    fn recorded() -> ProcessIdentity {
        ProcessIdentity {
            pid: 48,
            start_ticks: Some(777),
            boot_id: Some("boot".to_owned()),
            pid_namespace: Some("pid:[1]".to_owned()),
        }
    }

    fn judged(process: &ProcessIdentity, state: char, start_ticks: u64) -> Liveness {
        judge(process, Some("boot"), Some("pid:[1]"), Sighting::Process { state, start_ticks })
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        assert_eq!(parse_stat(STAT), Some(Sighting::Process { state: 'S', start_ticks: 777 }));
        assert_eq!(parse_stat("48 (cut"), None);
        assert_eq!(parse_stat("48 (cut) S 1 2"), None);
    }

    #[test]
    fn the_same_process_is_alive_until_it_is_a_zombie() {
        assert_eq!(judged(&recorded(), 'S', 777), Liveness::Alive);
        assert_eq!(judged(&recorded(), 'Z', 777), Liveness::Gone(GONE));
    }

    #[test]
    fn a_reused_process_id_is_not_the_process() {
        assert_eq!(judged(&recorded(), 'S', 778), Liveness::Gone(GONE));
        assert_eq!(judge(&recorded(), Some("boot"), Some("pid:[1]"), Sighting::Nothing), Liveness::Gone(GONE));
    }

    #[test]
    fn another_boot_ends_every_process() {
        let seen = Sighting::Process { state: 'S', start_ticks: 777 };
        assert!(matches!(judge(&recorded(), Some("later"), Some("pid:[1]"), seen), Liveness::Gone(_)));
    }

    #[test]
    fn what_cannot_be_seen_is_not_called_dead() {
        let elsewhere = judge(&recorded(), Some("boot"), Some("pid:[2]"), Sighting::Nothing);
        assert!(matches!(elsewhere, Liveness::Unknown(reason) if reason.contains("container")));
        assert!(matches!(judge(&recorded(), None, None, Sighting::Nothing), Liveness::Unknown(_)));
        let hidden = judge(&recorded(), Some("boot"), Some("pid:[1]"), Sighting::Hidden);
        assert!(matches!(hidden, Liveness::Unknown(reason) if reason.contains("another user")));
        let undated = ProcessIdentity { start_ticks: None, ..recorded() };
        assert!(matches!(judged(&undated, 'S', 777), Liveness::Unknown(_)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_lives_and_a_child_that_was_waited_for_does_not() {
        let own = current();
        assert!(own.start_ticks.is_some() && own.boot_id.is_some() && own.pid_namespace.is_some(), "{own:?}");
        assert_eq!(liveness(&own), Liveness::Alive);

        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let identity = ProcessIdentity { pid: child.id(), start_ticks: start_ticks(child.id()), ..own };
        assert_eq!(liveness(&identity), Liveness::Alive);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(liveness(&identity), Liveness::Gone(GONE));
    }
}
