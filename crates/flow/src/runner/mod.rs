//! What runs a model on its inputs, and nothing else.
//!
//! [`inputs`] finds files and turns them into what a network takes; [`native`] runs them on our own engine, [`torch`] in the
//! user's PyTorch. Both give back samples and, where asked, operators or a trace; what they mean is left to `analysis`.

pub(crate) mod bare;
pub(crate) mod error;
pub(crate) mod inputs;
pub(crate) mod native;
pub(crate) mod request;
pub(crate) mod settings;
pub(crate) mod torch;
pub(crate) mod tries;
