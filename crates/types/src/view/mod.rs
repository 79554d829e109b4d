//! Views: a document beside the figures that its pages derive from it, such as shares, sums and rankings.
//!
//! `analysis::view` fills them; `report` arranges and rounds them. None is ever written to a file.

mod counters;
mod run;

pub use counters::{CountersView, SampledKernelView};
pub use run::{
    ClassView, CommandRunView, CommandView, CostCentreView, CostCentresView, DeviceTimeView, EngineStepsView,
    FamilyView, FindingView, IdleStretch, KernelView, KernelsView, LostTimeView, MemoryView, NextStep, OperatorView,
    OperatorsView, Resource, RunView, Saving, SavingBasis, ShapeView, StageView, Takeaway, TriesView,
};
