//! Documents of the analytic model: the report, forecasts and sweeps.

mod forecast;
mod layer_page;
mod origin;
mod report;
mod sweep;

pub use forecast::*;
pub use layer_page::*;
pub use origin::*;
pub use report::*;
pub use sweep::*;
