//! A timeline prepared for its readers: where each row of it belongs.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::IdleStretch;
use crate::{ClockBasis, Nanos, Stage};

/// What is known of the rows of a timeline.
#[derive(Default)]
pub struct TimelineView<'a> {
    /// Where device work belongs.
    pub work: Places<'a>,
    /// The modules of device work, where the model is known.
    pub modules: Option<&'a WorkModules>,
    /// When a device was idle, and why.
    pub idle: Vec<IdleStretch>,
    /// Runs of stages, in order of their start.
    pub stages: Vec<NamedSpan>,
    /// Steps, in order.
    pub steps: Vec<NamedSpan>,
}

/// Where each row of `Timeline::work` belongs. It is looked up when it is asked for: a list would grow with millions of rows.
#[derive(Default)]
pub struct Places<'a>(Option<Box<dyn Fn(usize) -> WorkPlace + 'a>>);

impl<'a> Places<'a> {
    /// What a function says of each row.
    pub fn new(of: impl Fn(usize) -> WorkPlace + 'a) -> Self {
        Self(Some(Box::new(of)))
    }

    /// Of one row; absent where nothing is known of any.
    pub fn get(&self, row: usize) -> Option<WorkPlace> {
        self.0.as_ref().map(|of| of(row))
    }
}

/// Where a kernel, copy or memset belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkPlace {
    /// What kind of work it is, such as `gemm`.
    pub family: &'static str,
    /// The call that launched it, in `Timeline::calls`.
    pub launch: Option<u32>,
    /// The innermost operator around the launch, in `Timeline::operators`.
    pub operator: Option<u32>,
    /// The innermost range around the launch, in `Timeline::ranges`.
    pub range: Option<u32>,
    /// The innermost stage.
    pub stage: Option<Stage>,
}

/// A stretch of time with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSpan {
    /// Its name.
    pub name: String,
    /// Start, on the clock of the timeline.
    pub start: Nanos,
    /// How long.
    pub length: Nanos,
}

/// The collectives of a rank on the clock of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankLane {
    /// The rank; absent where its trace does not say.
    pub rank: Option<u32>,
    /// Waiting for the last rank, each named after whom it waited for.
    pub waits: Vec<NamedSpan>,
    /// What comes after: the collective itself.
    pub transfers: Vec<NamedSpan>,
}

/// The clock on which several timelines are drawn together: that of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankClock {
    /// What is added to the times of each.
    pub shifts: Vec<Nanos>,
    /// What that rests on.
    pub basis: ClockBasis,
    /// How far ends of one collective are apart at most.
    pub within: Option<Nanos>,
}

impl Default for RankClock {
    fn default() -> Self {
        Self { shifts: Vec::new(), basis: ClockBasis::None, within: None }
    }
}

/// The module of each row of `Timeline::work`: stretches of rows of one module. It is kept with a run, because only an import knows
/// the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkModules {
    /// Paths, as in the checkpoint.
    paths: Vec<String>,
    /// The row behind each stretch, and its place among the paths and one; zero where no module is known.
    stretches: Vec<(u32, u32)>,
}

impl WorkModules {
    /// Of the paths of all rows, in order.
    pub fn new<'a>(of_work: impl Iterator<Item = Option<&'a str>>) -> Self {
        let (mut modules, mut known) = (Self::default(), HashMap::new());
        for (row, path) in (1u32..).zip(of_work) {
            let place = path.map_or(0, |path| {
                *known.entry(path).or_insert_with(|| {
                    modules.paths.push(path.to_owned());
                    modules.paths.len() as u32
                })
            });
            match modules.stretches.last_mut() {
                Some((end, of)) if *of == place => *end = row,
                _ => modules.stretches.push((row, place)),
            }
        }
        modules
    }

    /// Whether no row has one.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// That of a row.
    pub fn of(&self, row: usize) -> Option<&str> {
        let (_, place) = self.stretches.get(self.stretches.partition_point(|(end, _)| *end as usize <= row))?;
        self.paths.get(place.checked_sub(1)? as usize).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_the_module_it_was_given_and_rows_beyond_have_none() {
        let rows = [None, Some("a"), Some("a"), Some("b"), None, Some("a")];
        let modules = WorkModules::new(rows.into_iter());
        let again: WorkModules = serde_json::from_str(&serde_json::to_string(&modules).unwrap()).unwrap();
        let found: Vec<_> = (0..rows.len()).map(|row| again.of(row)).collect();
        assert_eq!(found, rows);
        assert_eq!(again.of(rows.len()), None);
        let damaged = WorkModules { paths: Vec::new(), stretches: vec![(5, 9)] };
        assert_eq!(damaged.of(2), None);
        assert!(WorkModules::new([None].into_iter()).is_empty());
    }
}
