//! Which metrics a chip has: asked once of the tool, then kept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use types::UserError;

use super::capture::query_metrics;
use crate::tool::{InstalledTool, ask};
use crate::user_folder::user_folder;

/// How long the tool may take to list a chip's metrics: it starts the driver, and there are thousands.
const QUERY_LIMIT: Duration = Duration::from_secs(60);

/// The metrics of a chip, by their base names: `dram__bytes`, without `.sum` and the like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChipMetrics {
    /// The chip, in the tool's words: `gh100`; absent where it does not say.
    pub chip: Option<String>,
    names: BTreeSet<String>,
}

impl ChipMetrics {
    /// Reads what `ncu --query-metrics` prints.
    ///
    /// A line `Device NVIDIA H200 (GH100)`, a rule, a head, then one metric a line with its type, unit and description
    /// behind it. Lines of the tool itself start with `==`.
    pub fn read(text: &str) -> Self {
        let mut metrics = Self::default();
        for line in text.lines() {
            if let Some(device) = line.trim().strip_prefix("Device ") {
                let chip = device.trim_end().rsplit_once('(').and_then(|(_, chip)| chip.strip_suffix(')'));
                metrics.chip = metrics.chip.take().or_else(|| chip.map(str::to_lowercase));
            }
            let name = line.split_whitespace().next().unwrap_or_default();
            if is_metric(name) {
                metrics.names.insert(name.to_owned());
            }
        }
        metrics
    }

    /// Whether nothing was listed.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether the chip has a metric, given with or without its endings (`dram__bytes.sum.per_second`). What is no
    /// hardware counter (`launch__registers_per_thread`, `breakdown:...`) every chip has.
    pub fn has(&self, metric: &str) -> bool {
        let base = metric.split('.').next().unwrap_or(metric);
        !is_counter(base) || self.names.contains(base)
    }

    /// Splits what is asked for into what the chip has and what it lacks.
    pub fn split(&self, metrics: &[String]) -> (Vec<String>, Vec<String>) {
        metrics.iter().cloned().partition(|metric| self.has(metric))
    }
}

/// Whether a word is the base name of a metric: `unit__quantity`.
fn is_metric(word: &str) -> bool {
    let plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_';
    word.contains("__") && word.chars().all(plain)
}

/// Whether a base name is one of a hardware counter, which `--query-metrics` lists.
fn is_counter(base: &str) -> bool {
    let units = ["dram", "fbpa", "gpc", "gpu", "gr", "idc", "l1tex", "lts", "ltc", "pcie", "sm", "smsp", "sys", "tpc"];
    is_metric(base) && base.split("__").next().is_some_and(|unit| units.contains(&unit))
}

/// The metrics of the chip in this machine. Asked once for each release of the tool and each `device` (its name), then
/// read from where it was kept.
pub fn known_metrics(ncu: &InstalledTool, device: &str) -> Result<ChipMetrics, UserError> {
    let kept = kept_file(ncu, device);
    if let Some(text) = kept.as_deref().and_then(|path| std::fs::read_to_string(path).ok()) {
        let metrics = ChipMetrics::read(&text);
        if !metrics.is_empty() {
            return Ok(metrics);
        }
    }
    let text = ask(query_metrics(&ncu.path, None), QUERY_LIMIT)
        .map_err(|reason| UserError::failed(format!("{} failed: {reason}", ncu.path.display())))?;
    let metrics = ChipMetrics::read(&text);
    if let Some(path) = kept.filter(|_| !metrics.is_empty()) {
        // Kept for speed alone: where it cannot be, it is asked again.
        let _ = keep(&path, &text);
    }
    Ok(metrics)
}

fn kept_file(ncu: &InstalledTool, device: &str) -> Option<PathBuf> {
    let plain = |text: &str| -> String {
        text.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '-' }).collect()
    };
    let name = format!("{}-{}.txt", plain(device), plain(ncu.version.as_deref()?));
    Some(user_folder()?.join("ncu-metrics").join(name))
}

fn keep(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&temporary, text)?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "\
==PROF== Listing metrics
Device NVIDIA H200 (GH100)
----------------------------- --------------- --------------- ----------------------------------
Metric Name                   Metric Type     Metric Unit     Metric Description
----------------------------- --------------- --------------- ----------------------------------
dram__bytes                   Counter         byte            # of bytes accessed in DRAM
lts__t_sector_hit_rate        Ratio                           proportion of L2 sector lookups that hit
";

    #[test]
    fn what_the_chip_lacks_is_told_from_what_it_has() {
        let metrics = ChipMetrics::read(LISTED);
        assert_eq!(metrics.chip.as_deref(), Some("gh100"));
        assert!(metrics.has("dram__bytes.sum.per_second") && metrics.has("lts__t_sector_hit_rate.pct"));
        assert!(!metrics.has("sm__ops_path_tensor_src_bf16_dst_fp32.sum"));
        assert!(metrics.has("launch__registers_per_thread"), "it is no hardware counter");
        let asked = ["dram__bytes.sum", "sm__nothing.sum"].map(str::to_owned);
        assert_eq!(metrics.split(&asked), (vec![asked[0].clone()], vec![asked[1].clone()]));
        assert!(ChipMetrics::read("==ERROR== no device").is_empty());
    }
}
