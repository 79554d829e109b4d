//! Whether a trace is of a language model that keeps the keys and values of the tokens before.
//!
//! What shows it: attention of one position over one key more each time; or a kernel whose name says that it works on such a
//! cache or samples tokens, as serving engines have them. The kernels tell prefill and decode not apart.

use std::collections::BTreeSet;

use types::timeline::{OperatorKind, Timeline, WorkKind};
use types::{Facts, Remark, RunKind, RunKindName};

use crate::kernel::short_name;

/// Lengths of keys that follow each other.
const FEWEST_LENGTHS: usize = 3;
/// Parts of names of kernels that write or read a cache, in small letters.
const CACHE: [&str; 11] = [
    "reshape_and_cache",
    "concat_and_cache",
    "kv_cache",
    "kvcache",
    "copy_kv",
    "store_kv",
    "paged_attention",
    "pagedattention",
    "pagedkv",
    "paged_kv",
    "flash_decod",
];
/// Parts of names of kernels that sample from a distribution over tokens, in small letters.
const SAMPLING: [&str; 4] = ["samplingfromprob", "samplingfromlogit", "toppsampling", "topksampling"];

/// The kind of run and what shows it; `None` where nothing does.
pub(crate) fn run_kind(timeline: &Timeline) -> Option<RunKind> {
    if let Some((first, last)) = growth(timeline) {
        let facts = Facts::new().with("first", first).with("last", last);
        return Some(RunKind { kind: RunKindName::Generation, evidence: Remark::new("run-kind.growing-keys", facts) });
    }
    let inference = |evidence| RunKind { kind: RunKindName::Inference, evidence };
    let facts = |name: &str| Facts::new().with("name", short_name(name));
    if let Some(name) = kernel(timeline, &CACHE) {
        return Some(inference(Remark::new("run-kind.cache-kernel", facts(name))));
    }
    kernel(timeline, &SAMPLING).map(|name| inference(Remark::new("run-kind.sampling-kernel", facts(name))))
}

/// The longest row of lengths, each one longer than the one before, that one position attends to.
fn growth(timeline: &Timeline) -> Option<(u64, u64)> {
    let operators = timeline.operators.iter().filter(|row| row.kind == OperatorKind::Framework);
    let keys = operators.filter_map(|row| {
        let is_attention = timeline.name(row.name) == "aten::scaled_dot_product_attention";
        let shapes = &timeline.signatures.get(row.signature.filter(|_| is_attention)?).shapes;
        let [queries, keys] = [0, 1].map(|place| shapes.get(place)?.iter().rev().nth(1).copied());
        keys.filter(|_| queries == Some(1))
    });
    let lengths: Vec<u64> = keys.collect::<BTreeSet<u64>>().into_iter().collect();
    let rows = lengths.chunk_by(|one, two| two - one == 1);
    let longest = rows.max_by_key(|row| row.len()).filter(|row| row.len() >= FEWEST_LENGTHS)?;
    longest.first().copied().zip(longest.last().copied())
}

/// The first kernel with one of these in its name.
fn kernel<'a>(timeline: &'a Timeline, signs: &[&str]) -> Option<&'a str> {
    let is_sign = |name: &str| {
        let name = name.to_ascii_lowercase();
        signs.iter().any(|sign| name.contains(sign))
    };
    let named: Vec<bool> = timeline.names.iter().map(|(_, name)| is_sign(name)).collect();
    let mut kernels = timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
    kernels.find(|work| named[work.name.index()]).map(|work| timeline.name(work.name))
}
