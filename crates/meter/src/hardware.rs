//! The hardware catalogue: which devices are known, what they can do, and which document says so.
//!
//! One YAML file describes one device. The files under `hardware/` of this crate are embedded; a user's own are handed
//! in as text. Nothing here opens a file or asks a driver: whoever does hands over names and texts. Rates measured on
//! the machine itself are not part of the catalogue.

mod error;
mod file;

use include_dir::{Dir, include_dir};
use types::{Bytes, Hardware};

pub use error::HardwareError;

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/hardware");

/// How many near names an unknown one is answered with.
const NEAREST_SHOWN: usize = 4;

/// Jaro-Winkler similarity from which a name counts as near. At 0.85 an H800 is answered with the H200 and a P100 with
/// the V100s, while an A40, which resembles nothing here, gets no suggestion.
const NEAR: f64 = 0.85;

/// What ROCm calls a device it has no name for, and two devices it has one name for.
const UNSPECIFIC: &[&str] = &["", "amd radeon graphics", "amd instinct mi250x/mi250", "amd instinct mi250x / mi250"];

/// Share of a device's memory that a driver may keep to itself.
const MEMORY_RESERVED: f64 = 0.05;

/// All known devices, ordered by id.
#[derive(Clone, Debug)]
pub struct Catalogue {
    entries: Vec<Entry>,
}

/// A device and the file that describes it.
#[derive(Clone, Debug)]
struct Entry {
    file: String,
    hardware: Hardware,
}

impl Catalogue {
    /// The devices that ship with the program.
    pub fn built_in() -> Result<Self, HardwareError> {
        let mut files = Vec::new();
        for file in BUILT_IN.files() {
            let name = file.path().to_string_lossy().into_owned();
            let not_text = || HardwareError::file(format!("{name}: not UTF-8 text"));
            let text = file.contents_utf8().ok_or_else(not_text)?;
            files.push((name, text));
        }
        Self { entries: Vec::new() }.with_files(files)
    }

    /// Adds described devices, each given as the name and the text of its file.
    ///
    /// A device whose id is already known replaces that one, so that a user can correct a number. Two of the new files
    /// with one id, or two devices with one driver name, are an error.
    pub fn with_files<N: Into<String>, T: AsRef<str>>(
        mut self,
        files: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Self, HardwareError> {
        let mut added: Vec<Entry> = Vec::new();
        for (name, text) in files {
            let file = name.into();
            let hardware = file::read(&file, text.as_ref())?;
            if let Some(first) = added.iter().find(|entry| entry.hardware.id == hardware.id) {
                let (first, id) = (&first.file, &hardware.id);
                return Err(HardwareError::file(format!("{first} and {file} both describe the id `{id}`")));
            }
            added.push(Entry { file, hardware });
        }
        self.entries.retain(|entry| added.iter().all(|new| new.hardware.id != entry.hardware.id));
        self.entries.append(&mut added);
        self.entries.sort_by(|a, b| a.hardware.id.cmp(&b.hardware.id));
        self.check_driver_names()?;
        Ok(self)
    }

    /// Every device, ordered by id.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = &Hardware> {
        self.entries.iter().map(|entry| &entry.hardware)
    }

    /// The device with this id, name or driver name, in any case, with or without a leading `NVIDIA`
    /// or `AMD`, and with dashes or spaces between its words.
    ///
    /// Only a whole name matches: an `RTX 4090 D` or an `RTX 4090 Laptop GPU` is not an `RTX 4090`, and a MIG slice is
    /// not the device it was cut from.
    pub fn find(&self, query: &str) -> Result<&Hardware, HardwareError> {
        let wanted = plain(query);
        // An id is the name we give; it wins over what a file of another device may claim.
        let by_id = self.devices().find(|device| plain(&device.id) == wanted);
        by_id
            .or_else(|| self.devices().find(|device| names(device).any(|name| plain(name) == wanted)))
            .ok_or_else(|| self.not_found(query.trim(), &wanted))
    }

    /// Why there is no device of that name. `h100` is the start of three of them; with one alone it is still a guess.
    fn not_found(&self, query: &str, wanted: &str) -> HardwareError {
        let ids = |devices: &mut dyn Iterator<Item = &Hardware>| devices.map(|device| device.id.clone()).collect();
        let start = format!("{wanted} ");
        let begins = |device: &&Hardware| plain(&device.id).starts_with(&start);
        let matches: Vec<String> = ids(&mut self.devices().filter(begins));
        let query = query.to_owned();
        match matches.len() {
            0 | 1 => HardwareError::Unknown { query, nearest: self.nearest(wanted), known: ids(&mut self.devices()) },
            _ => HardwareError::Ambiguous { query, matches },
        }
    }

    /// The device a trace describes: by its name, or, where the driver has none of its own for it, by the size of its
    /// memory and the number of its multiprocessors if only one device has these.
    pub fn identify(&self, name: &str, memory: Option<Bytes>, multiprocessors: Option<u32>) -> Option<&Hardware> {
        if let Ok(found) = self.find(name) {
            return Some(found);
        }
        let lower = name.to_lowercase();
        if !UNSPECIFIC.iter().any(|text| lower == *text) && !lower.starts_with("gfx") {
            return None;
        }
        let (memory, multiprocessors) = (memory?, multiprocessors?);
        let alike = |device: &&Hardware| {
            let share = memory.as_f64() / device.memory_bytes.as_f64();
            device.sm_count == multiprocessors && (1.0 - MEMORY_RESERVED..=1.001).contains(&share)
        };
        let mut found = self.devices().filter(alike);
        found.next().filter(|_| found.next().is_none())
    }

    fn check_driver_names(&self) -> Result<(), HardwareError> {
        let claims = || self.entries.iter().flat_map(|e| e.hardware.nvml_names.iter().map(move |name| (name, e)));
        for (index, (name, second)) in claims().enumerate() {
            if let Some((_, first)) = claims().take(index).find(|(earlier, _)| plain(earlier) == plain(name)) {
                let (id, first) = (&first.hardware.id, &first.file);
                let message = format!("{first} and {} both claim the driver name `{name}`", second.file);
                let hint = Some(format!("to replace the device of {first}, give yours its id, `{id}`"));
                return Err(HardwareError::File { message, hint });
            }
        }
        Ok(())
    }

    /// Ids of the devices named most like `wanted`, best first.
    fn nearest(&self, wanted: &str) -> Vec<String> {
        let mut scored: Vec<(f64, &str)> = self
            .devices()
            .map(|device| {
                let best = names(device).map(|name| likeness(&plain(name), wanted)).fold(0.0, f64::max);
                (best, device.id.as_str())
            })
            .filter(|(score, _)| *score >= NEAR)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        scored.into_iter().take(NEAREST_SHOWN).map(|(_, id)| id.to_owned()).collect()
    }
}

/// Everything a device answers to.
fn names(device: &Hardware) -> impl Iterator<Item = &str> {
    [device.id.as_str(), device.name.as_str()].into_iter().chain(device.nvml_names.iter().map(String::as_str))
}

/// A name as lower-case words, dashes and the vendor's prefix taken off: `rtx-4090` is `RTX 4090`, and drivers before
/// 2021 left the prefix out.
fn plain(name: &str) -> String {
    let lower = name.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| c.is_whitespace() || c == '-' || c == '_').filter(|word| !word.is_empty()).collect();
    words.strip_prefix(&["nvidia"]).or(words.strip_prefix(&["amd"])).unwrap_or(&words).join(" ")
}

/// 1 where one name is a piece of the other (`h100` and `h100 sxm`), their similarity otherwise.
fn likeness(known: &str, wanted: &str) -> f64 {
    let piece = !wanted.is_empty() && (known.contains(wanted) || wanted.starts_with(&format!("{known} ")));
    if piece { 1.0 } else { strsim::jaro_winkler(known, wanted) }
}

#[cfg(test)]
mod tests {
    use types::Failure;

    use super::*;

    fn catalogue() -> Catalogue {
        Catalogue::built_in().unwrap()
    }

    fn minimal(id: &str, driver_name: &str) -> String {
        format!(
            "{{id: {id}, name: N {id}, vendor: V, nvml_names: [{driver_name}], architecture: A, \
             sources: {{d: {{title: T, publisher: P}}}}, memory_bytes: {{value: 1, source: d}}, \
             bytes_per_second: {{value: 1.0, source: d}}, sm_count: {{value: 7, source: d}}, \
             peaks: [{{dtype: fp32, unit: vector, accumulate: fp32, flops: 1e12, source: d}}]}}"
        )
    }

    #[test]
    fn every_file_loads_under_its_own_id() {
        let catalogue = catalogue();
        assert_eq!(catalogue.entries.len(), BUILT_IN.files().count());
        for entry in &catalogue.entries {
            assert_eq!(entry.file, format!("{}.yaml", entry.hardware.id));
            assert!(!entry.hardware.nvml_names.is_empty(), "{} has no driver name", entry.file);
        }
    }

    #[test]
    fn every_device_is_found_by_each_of_its_names() {
        let catalogue = catalogue();
        for device in catalogue.devices() {
            for name in names(device) {
                for spelling in
                    [name.to_owned(), name.to_uppercase(), format!(" nvidia  {} ", plain(name)), plain(name)]
                {
                    assert_eq!(catalogue.find(&spelling).unwrap().id, device.id, "{spelling}");
                }
            }
        }
    }

    #[test]
    fn a_device_without_a_name_is_found_by_memory_and_multiprocessors_where_one_alone_has_them() {
        let catalogue = catalogue();
        let identify = |name, memory, units| catalogue.identify(name, Some(Bytes::new(memory)), Some(units));
        assert_eq!(identify("", 206_141_652_992, 304).unwrap().id, "mi300x");
        assert_eq!(identify("gfx90a", 68_702_699_520, 110).unwrap().id, "mi250x");
        assert_eq!(identify("AMD Instinct MI300X VF", 1, 1).unwrap().id, "mi300x");
        // Two devices have these, another name is another device, and a slice is not the device.
        assert!(identify("gfx950", 309_220_868_096, 256).is_none());
        assert!(identify("AMD Instinct MI308X", 206_141_652_992, 304).is_none());
        assert!(identify("", 25_769_803_776, 38).is_none() && catalogue.identify("", None, Some(304)).is_none());
    }

    #[test]
    fn a_name_that_only_begins_like_a_device_is_another_device() {
        let catalogue = catalogue();
        for name in [
            "NVIDIA GeForce RTX 4090 D",
            "NVIDIA GeForce RTX 4090 Laptop GPU",
            "NVIDIA H200 NVL 2",
            "NVIDIA H100 64GB",
            "NVIDIA H20-3e",
            "NVIDIA GB300",
            "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
            "",
        ] {
            assert!(matches!(catalogue.find(name), Err(HardwareError::Unknown { .. })), "{name}");
        }
        let error = catalogue.find("H100").unwrap_err();
        assert_eq!(error.to_string(), "`H100` matches several devices: h100-nvl, h100-pcie, h100-sxm");
        assert!(catalogue.find("gaudi 3").unwrap_err().to_string().contains("known devices: a100-pcie-40gb, "));
    }

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let catalogue = catalogue();
        assert_eq!(catalogue.nearest("h100"), ["h100-nvl", "h100-pcie", "h100-sxm", "h200"]);
        assert_eq!(catalogue.nearest("4090"), ["rtx-4090"]);
        assert_eq!(catalogue.nearest("h200 sxm")[0], "h200");
        assert_eq!(catalogue.nearest("geforce rtx 4090 d")[0], "rtx-4090");
        assert_eq!(catalogue.nearest("h800"), ["h200"]);
        for far in ["a40", "gaudi 3", ""] {
            assert_eq!(catalogue.nearest(far), Vec::<String>::new(), "{far}");
        }
    }

    #[test]
    fn a_user_file_replaces_the_device_of_its_id() {
        let replaced = catalogue().with_files([("mine.yaml", minimal("h200", "NVIDIA H200"))]).unwrap();
        assert_eq!(replaced.devices().len(), catalogue().devices().len());
        assert_eq!(replaced.find("NVIDIA H200").unwrap().sm_count, 7);
    }

    #[test]
    fn a_user_file_adds_a_device() {
        let more = catalogue().with_files([("mine.yaml", minimal("abacus", "Abacus 1"))]).unwrap();
        assert_eq!(more.find("abacus 1").unwrap().id, "abacus");
    }

    #[test]
    fn two_files_with_one_id_are_refused() {
        let files = [("one.yaml", minimal("abacus", "A")), ("two.yaml", minimal("abacus", "B"))];
        let error = catalogue().with_files(files).unwrap_err();
        assert_eq!(error.to_string(), "one.yaml and two.yaml both describe the id `abacus`");
    }

    #[test]
    fn a_driver_name_belongs_to_one_device() {
        let error = catalogue().with_files([("mine.yaml", minimal("mine", "h200"))]).unwrap_err();
        insta::assert_snapshot!(
            format!("{error}\nhint: {}", error.hint().unwrap()),
            @r"
        h200.yaml and mine.yaml both claim the driver name `h200`
        hint: to replace the device of h200.yaml, give yours its id, `h200`
        "
        );
    }
}
