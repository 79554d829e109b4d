//! The host processor.

use std::collections::BTreeSet;

use types::CpuInfo;

use super::file;

/// Extensions that decide how fast matrices are multiplied; the rest of the hundred-odd flags says nothing here.
const FEATURES: [&str; 22] = [
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_bf16",
    "amx_fp16",
    "amx_int8",
    "asimd",
    "asimdhp",
    "i8mm",
    "bf16",
    "sve",
    "sve2",
];

/// Describes the processor.
pub(super) fn capture() -> CpuInfo {
    let text = file::text("/proc/cpuinfo").unwrap_or_default();
    let policy = |name: &str| file::number(format!("/sys/devices/system/cpu/cpu0/cpufreq/{name}"));
    let megahertz = |name: &str| policy(name).and_then(|kilohertz| u32::try_from(kilohertz / 1000).ok());
    let mut cpu = read(&text);
    cpu.architecture = std::env::consts::ARCH.to_owned();
    cpu.threads_available = std::thread::available_parallelism().ok().and_then(|count| u32::try_from(count.get()).ok());
    cpu.clock_mhz = megahertz("scaling_cur_freq").or(cpu.clock_mhz);
    cpu.clock_max_mhz = megahertz("cpuinfo_max_freq");
    cpu.governor = governor(cpu.threads.unwrap_or(1));
    cpu
}

/// The governor of all threads, or all of them where they differ.
fn governor(threads: u32) -> Option<String> {
    let names: BTreeSet<String> = (0..threads)
        .filter_map(|thread| file::text(format!("/sys/devices/system/cpu/cpu{thread}/cpufreq/scaling_governor")))
        .collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(", "))
}

/// What `/proc/cpuinfo` says: one block of `name : value` lines for each thread.
fn read(text: &str) -> CpuInfo {
    let field = |block: &str, name: &str| {
        block.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found.trim() == name).then(|| value.trim().to_owned()).filter(|value| !value.is_empty())
        })
    };
    let blocks: Vec<&str> = text.split("\n\n").filter(|block| field(block, "processor").is_some()).collect();
    let first = blocks.first().copied().unwrap_or_default();
    let sockets: BTreeSet<String> = blocks.iter().filter_map(|block| field(block, "physical id")).collect();
    let cores: BTreeSet<(String, String)> =
        blocks.iter().filter_map(|block| field(block, "physical id").zip(field(block, "core id"))).collect();
    let count = |number: usize| u32::try_from(number).ok().filter(|number| *number > 0);
    let flags = field(first, "flags").or_else(|| field(first, "Features")).unwrap_or_default();
    let flags: BTreeSet<&str> = flags.split_whitespace().collect();
    CpuInfo {
        model: field(first, "model name").or_else(|| arm_model(first, field)),
        cores_physical: count(cores.len()),
        threads: count(blocks.len()),
        sockets: count(sockets.len()),
        clock_mhz: field(first, "cpu MHz").and_then(|clock| clock.parse::<f64>().ok()).map(|clock| clock as u32),
        features: FEATURES.into_iter().filter(|name| flags.contains(name)).map(str::to_owned).collect(),
        ..CpuInfo::default()
    }
}

/// Arm kernels print numbers instead of a name. Only the two parts that stand beside NVIDIA GPUs in number are named.
fn arm_model(block: &str, field: impl Fn(&str, &str) -> Option<String>) -> Option<String> {
    let (maker, part) = field(block, "CPU implementer").zip(field(block, "CPU part"))?;
    Some(match (maker.as_str(), part.as_str()) {
        ("0x41", "0xd4f") => "Arm Neoverse-V2".to_owned(),
        ("0x41", "0xd0c") => "Arm Neoverse-N1".to_owned(),
        _ => format!("Arm implementer {maker} part {part}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const XEON: &str = include_str!("../../tests/fixtures/cpuinfo-xeon-vm.txt");

    #[test]
    fn a_virtual_machine_with_two_cores_is_read() {
        let cpu = read(XEON);
        assert_eq!(cpu.model.as_deref(), Some("Intel(R) Xeon(R) Processor"));
        assert_eq!((cpu.threads, cpu.cores_physical, cpu.sockets), (Some(2), Some(2), Some(1)));
        assert_eq!(cpu.clock_mhz, Some(2000));
        assert!(["avx2", "fma", "avx512_bf16", "amx_bf16"].iter().all(|name| cpu.features.contains(&(*name).into())));
        assert!(!cpu.features.contains(&"asimd".into()));
    }

    #[test]
    fn two_threads_of_one_core_are_one_core() {
        let block = |thread: u32, socket: u32, core: u32| {
            format!("processor\t: {thread}\nmodel name\t: X\nphysical id\t: {socket}\ncore id\t\t: {core}\n")
        };
        let text = [block(0, 0, 0), block(1, 0, 0), block(2, 1, 0), block(3, 1, 0)].join("\n");
        let cpu = read(&text);
        assert_eq!((cpu.threads, cpu.cores_physical, cpu.sockets), (Some(4), Some(2), Some(2)));
    }

    #[test]
    fn an_arm_server_has_a_name_and_unknown_cores() {
        let text = "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd asimdhp sve bf16 i8mm\n\
                    CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd4f\n";
        let cpu = read(text);
        assert_eq!(cpu.model.as_deref(), Some("Arm Neoverse-V2"));
        assert_eq!((cpu.threads, cpu.cores_physical, cpu.sockets), (Some(1), None, None));
        assert_eq!(cpu.features, ["asimd", "asimdhp", "i8mm", "bf16", "sve"]);
    }

    #[test]
    fn an_empty_text_leaves_everything_unknown() {
        assert_eq!(read(""), CpuInfo::default());
    }
}
