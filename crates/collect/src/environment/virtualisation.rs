//! Whether the machine is a virtual one, and under which hypervisor.

use super::file;

/// What gives a hypervisor away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Signs {
    /// The processor says that it is a guest.
    pub(super) guest: bool,
    /// The twelve letters a hypervisor shows its guests.
    pub(super) signature: Option<String>,
    /// Maker of the machine, as its firmware states it.
    pub(super) vendor: Option<String>,
    /// Product, likewise.
    pub(super) product: Option<String>,
    /// `/sys/hypervisor/type`.
    pub(super) hypervisor: Option<String>,
}

/// What firmware of virtual machines states as their maker or product. Needed where the processor does not say that it
/// is a guest, which on Arm it never does.
const VIRTUAL_MAKERS: [&str; 8] =
    ["QEMU", "KVM", "VMware", "Xen", "innotek", "Bochs", "OpenStack", "Google Compute Engine"];

impl Signs {
    pub(super) fn of_this_machine() -> Self {
        let firmware = |name: &str| file::text(format!("/sys/class/dmi/id/{name}"));
        let processor = file::text("/proc/cpuinfo").unwrap_or_default();
        let guest = processor
            .lines()
            .find_map(|line| line.strip_prefix("flags"))
            .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
        Self {
            guest,
            signature: guest.then(signature).flatten(),
            vendor: firmware("sys_vendor"),
            product: firmware("product_name"),
            hypervisor: file::text("/sys/hypervisor/type"),
        }
    }

    /// The hypervisor, or none that could be recognised.
    pub(super) fn judge(&self) -> Option<String> {
        let machine: Vec<&str> = [&self.vendor, &self.product].into_iter().flatten().map(String::as_str).collect();
        let machine = machine.join(" ");
        let name = match self.signature.as_deref() {
            Some("KVMKVMKVM") => Some("kvm"),
            Some("Microsoft Hv") => Some("hyper-v"),
            Some("VMwareVMware") => Some("vmware"),
            Some("XenVMMXenVMM") => Some("xen"),
            Some("TCGTCGTCGTCG") => Some("qemu without kvm"),
            Some("bhyve bhyve") => Some("bhyve"),
            Some("ACRNACRNACRN") => Some("acrn"),
            _ => None,
        };
        let name = name.or(self.hypervisor.as_deref());
        let virtual_maker = VIRTUAL_MAKERS.iter().any(|maker| machine.contains(maker));
        match (name, machine.is_empty()) {
            (Some(name), true) => Some(name.to_owned()),
            (Some(name), false) => Some(format!("{name} ({machine})")),
            (None, false) if self.guest || virtual_maker => Some(machine),
            (None, _) => self.guest.then(|| "unknown hypervisor".to_owned()),
        }
    }
}

/// Leaf 0x40000000 of `cpuid`, which hypervisors answer with their name.
#[cfg(target_arch = "x86_64")]
fn signature() -> Option<String> {
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    let text = String::from_utf8(bytes).ok()?;
    let text = text.trim_end_matches('\0').trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn signature() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(signature: &str, vendor: &str, product: &str) -> Signs {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Signs {
            guest: true,
            signature: given(signature),
            vendor: given(vendor),
            product: given(product),
            hypervisor: None,
        }
    }

    #[test]
    fn the_processors_answer_names_the_hypervisor() {
        assert_eq!(signs("KVMKVMKVM", "Amazon EC2", "p5.48xlarge").judge().unwrap(), "kvm (Amazon EC2 p5.48xlarge)");
        assert_eq!(signs("KVMKVMKVM", "", "").judge().unwrap(), "kvm", "a machine without firmware tables");
        let azure = signs("Microsoft Hv", "Microsoft Corporation", "Virtual Machine");
        assert_eq!(azure.judge().unwrap(), "hyper-v (Microsoft Corporation Virtual Machine)");
    }

    #[test]
    fn a_guest_of_an_unknown_hypervisor_says_so() {
        assert_eq!(signs("", "", "").judge().unwrap(), "unknown hypervisor");
        assert_eq!(signs("SRESRESRESRE", "", "").judge().unwrap(), "unknown hypervisor");
    }

    #[test]
    fn a_real_machine_is_none_even_when_a_cloud_made_it() {
        let metal = Signs { guest: false, ..signs("", "Amazon EC2", "p5.metal") };
        assert_eq!(metal.judge(), None);
        assert_eq!(Signs::default().judge(), None);
    }

    #[test]
    fn firmware_tells_where_the_processor_does_not() {
        let arm = Signs { guest: false, ..signs("", "QEMU", "KVM Virtual Machine") };
        assert_eq!(arm.judge().unwrap(), "QEMU KVM Virtual Machine");
    }
}
