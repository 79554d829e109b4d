//! What a what-if says: what its changes assume, and the critical path before and after them.

use types::WhatIf;

use super::{Spoken, remark};

impl Spoken for WhatIf {
    fn say(&mut self) {
        self.changes.iter_mut().for_each(|change| remark::say(&mut change.assumes));
        let parts = self.before.critical_path.iter_mut().chain(&mut self.after.critical_path);
        parts.for_each(|part| remark::say(&mut part.cause));
        self.replay.refused.iter_mut().chain(&mut self.notes).for_each(remark::say);
    }
}
