//! The run folder and the files in it.

pub(crate) mod assumptions;
pub(crate) mod bundle;
pub(crate) mod documents;
pub(crate) mod regions;
pub(crate) mod run;
pub(crate) mod thumbnails;
