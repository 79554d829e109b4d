//! What follows: facts, what is said of them, and what to do.

pub(crate) mod caveat;
pub(crate) mod facts;
pub(crate) mod finding;
pub(crate) mod loss;
pub(crate) mod quality;
pub(crate) mod remark;
pub(crate) mod remedy;
pub(crate) mod trial;
