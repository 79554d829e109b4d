//! Views: a document beside the figures that its pages derive from it, such as shares, sums and rankings.
//!
//! `analysis::view` fills them; `report` arranges and rounds them. None but the modules of device
//! work is ever written to a file.

mod run;
mod serving;
mod timeline;

pub use run::{
    CommandRunView, CommandView, CostCentreView, CostCentresView, DeviceTimeView, EngineStepsView, FamilyView,
    FindingView, IdleStretch, KernelView, KernelsView, LossBasis, NextStep, Resource, RunView, Saving, SavingBasis,
    StageView, Takeaway, TriesView,
};
pub use serving::{PartView, ServingView};
pub use timeline::{NamedSpan, Places, RankClock, RankLane, TimelineView, WorkModules, WorkPlace};
