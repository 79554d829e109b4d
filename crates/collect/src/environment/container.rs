//! Whether the process runs in a container, and of which kind.

use std::path::Path;

use super::file;

/// What gives a container away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Signs {
    /// `/.dockerenv` is there.
    pub(super) docker_file: bool,
    /// `/run/.containerenv` is there.
    pub(super) podman_file: bool,
    /// Kubernetes has told the process where its service is.
    pub(super) kubernetes: bool,
    /// `/proc/1/cgroup`.
    pub(super) groups: String,
    /// `/proc/self/mountinfo`.
    pub(super) mounts: String,
    /// `/proc/version`.
    pub(super) kernel: String,
}

/// The one kernel banner that gVisor shows, whatever it runs on.
const GVISOR_BANNER: &str = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016";

impl Signs {
    pub(super) fn of_this_machine() -> Self {
        Self {
            docker_file: Path::new("/.dockerenv").exists(),
            podman_file: Path::new("/run/.containerenv").exists(),
            kubernetes: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            groups: file::text("/proc/1/cgroup").unwrap_or_default(),
            mounts: file::text("/proc/self/mountinfo").unwrap_or_default(),
            kernel: file::text("/proc/version").unwrap_or_default(),
        }
    }

    /// The kind, or none; and a note where the signs contradict each other.
    pub(super) fn judge(&self) -> (Option<String>, Option<String>) {
        let named = |text: &str| self.groups.lines().any(|line| line.contains(text));
        let gvisor = self.kernel.starts_with(GVISOR_BANNER);
        let kind = if self.kubernetes || named("kubepods") {
            Some("kubernetes")
        } else if self.podman_file || named("libpod") {
            Some("podman")
        } else if named("docker") {
            Some("docker")
        } else if named("lxc") {
            Some("lxc")
        } else if named("containerd") {
            Some("containerd")
        } else if self.docker_file {
            // The file is part of the image, so a virtual machine made from one has it too. There the root is a disk;
            // in a container it is a layered file system.
            if let Some(disk) = self.root_disk().filter(|_| !gvisor) {
                let note = format!(
                    "/.dockerenv exists, but the root file system is the disk {disk}: assumed not to be a container"
                );
                return (None, Some(note));
            }
            Some("docker")
        } else {
            None
        };
        let kind = match (kind, gvisor) {
            (Some(kind), true) => Some(format!("{kind} (gVisor)")),
            (None, true) => Some("gVisor".to_owned()),
            (kind, false) => kind.map(str::to_owned),
        };
        (kind, None)
    }

    /// The device under the root file system, when it is a disk of the machine.
    fn root_disk(&self) -> Option<&str> {
        let root = self.mounts.lines().find(|line| line.split(' ').nth(4) == Some("/"))?;
        let (_, source) = root.split_once(" - ")?;
        let device = source.split(' ').nth(1)?;
        (device.starts_with("/dev/") && !device.starts_with("/dev/mapper/docker")).then_some(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERLAY: &str = "745 633 0:51 / / rw,relatime master:282 - overlay overlay rw,lowerdir=/var/lib/docker";
    const DISK: &str = "22 27 0:21 / /proc rw - proc proc rw\n27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard";

    fn kind(signs: &Signs) -> Option<String> {
        signs.judge().0
    }

    #[test]
    fn a_machine_without_signs_is_no_container() {
        assert_eq!(Signs::default().judge(), (None, None));
        let host = Signs { groups: "0::/init.scope".into(), mounts: DISK.into(), ..Signs::default() };
        assert_eq!(host.judge(), (None, None));
    }

    #[test]
    fn each_runtime_is_known_by_its_sign() {
        let docker = Signs { docker_file: true, groups: "0::/".into(), mounts: OVERLAY.into(), ..Signs::default() };
        assert_eq!(kind(&docker).as_deref(), Some("docker"));
        assert_eq!(kind(&Signs { kubernetes: true, ..docker.clone() }).as_deref(), Some("kubernetes"));
        let groups = |text: &str| Signs { groups: text.into(), ..Signs::default() };
        assert_eq!(kind(&groups("12:cpu:/docker/4f66")).as_deref(), Some("docker"));
        assert_eq!(kind(&groups("0::/kubepods.slice/pod12")).as_deref(), Some("kubernetes"));
        assert_eq!(kind(&Signs { podman_file: true, ..Signs::default() }).as_deref(), Some("podman"));
        let gvisor = Signs { kernel: GVISOR_BANNER.into(), ..docker };
        assert_eq!(kind(&gvisor).as_deref(), Some("docker (gVisor)"));
    }

    #[test]
    fn a_virtual_machine_made_from_an_image_is_no_container_and_says_why() {
        let (kind, note) = Signs { docker_file: true, mounts: DISK.into(), ..Signs::default() }.judge();
        assert_eq!(kind, None);
        assert!(note.unwrap().contains("the disk /dev/vda"));
    }
}
