//! What a conclusion is about: a stage, or the run where nothing says what its parts are.

use std::fmt;

use types::{Base, Stage};

/// A top stage, or all work that is in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    /// Prefill or decode.
    Stage(Stage),
    /// The run, which has no stages.
    Run,
    /// What lies in no stage of a run that has some.
    Rest,
}

impl Scope {
    /// The scope of a stage.
    pub(crate) fn of(stage: Stage) -> Self {
        Self::Stage(stage.top())
    }

    /// What shares of it are of.
    pub(crate) fn base(self) -> Base {
        match self {
            Self::Stage(stage) => Base::Stage(stage),
            Self::Run => Base::Run,
            Self::Rest => Base::OutsideStages,
        }
    }

    /// The stage; absent for the run and for what lies in none.
    pub(crate) fn stage(self) -> Option<Stage> {
        match self {
            Self::Stage(stage) => Some(stage),
            Self::Run | Self::Rest => None,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stage(stage) => f.pad(stage.name()),
            Self::Run => f.pad("the run"),
            Self::Rest => f.pad("the time outside of stages"),
        }
    }
}
