//! Documents of the analytic model: the report, forecasts and sweeps.

pub(crate) mod forecast;
pub(crate) mod layer_page;
pub(crate) mod origin;
pub(crate) mod report;
pub(crate) mod sweep;
