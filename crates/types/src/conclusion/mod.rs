//! What follows: facts, what is said of them, and what to do.

mod caveat;
mod facts;
mod finding;
mod loss;
mod quality;
mod remark;
mod remedy;
mod trial;

pub use caveat::*;
pub use facts::*;
pub use finding::*;
pub use loss::*;
pub use quality::*;
pub use remark::*;
pub use remedy::*;
pub use trial::*;
