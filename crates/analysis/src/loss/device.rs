//! The books of a trace: waiting by what the host did, running by the family of the kernel.
//!
//! The least time of matrix work is set against kernels that do matrix work, that of all other work against the other
//! kernels, each in proportion to how long the kernels of a family ran. So what stands under the families adds up to what
//! kernels ran beyond the least time, even where one family alone ran shorter than its share.

use std::collections::BTreeMap;

use types::{IdleCause, Nanos};

use super::{Cause, Ledger, StageLoss};
use crate::device::DeviceRecords;
use crate::kernel::Family;
use crate::scope::Scope;
use crate::statistics::share;
use crate::timings::rounded;

/// What prefill and decode lost.
pub(crate) fn books(device: &DeviceRecords) -> Ledger {
    let mut ledger = Ledger::default();
    for (stage, work) in &device.stages {
        let least = work.least.map(|[matrix, other]| matrix + other);
        ledger.open(StageLoss { stage: *stage, wall: work.wall, least });
        // A server without a request loses nothing, and neither does a program that sleeps.
        let is_lost = |wait: IdleCause| !matches!(wait, IdleCause::NoRequest | IdleCause::NoWork);
        for (wait, time) in work.waits.iter().filter(|(wait, _)| is_lost(**wait)) {
            ledger.add(*stage, Cause::Waiting(*wait), *time);
        }
        ledger.add(*stage, Cause::AfterLast, work.after);
        ledger.add(*stage, Cause::OtherWork, work.others);
        let Some(least) = work.least else { continue };
        let ran = by_family(device, *stage);
        for (least, matrix) in least.into_iter().zip([true, false]) {
            let of_kind = || ran.iter().filter(|(family, _)| is_matrix(**family) == matrix);
            let all: Nanos = of_kind().map(|(_, run)| *run).sum();
            let Some(beyond) = share((all - least).max(Nanos::ZERO).get() as f64, all.get() as f64) else { continue };
            for (family, run) in of_kind() {
                ledger.add(*stage, Cause::Kernels(*family), rounded(run.get() as f64 * beyond));
            }
        }
    }
    ledger
}

fn by_family(device: &DeviceRecords, stage: Scope) -> BTreeMap<Family, Nanos> {
    let mut families = BTreeMap::new();
    for group in device.groups.iter().filter(|group| group.scope == stage) {
        *families.entry(group.family).or_default() += group.run;
    }
    families
}

/// Families whose kernels do what a model's matrix work is.
fn is_matrix(family: Family) -> bool {
    matches!(family, Family::Gemm | Family::Gemv | Family::Attention | Family::Convolution | Family::Experts)
}
