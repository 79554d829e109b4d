//! A double of the CUDA driver: it is there, and that is all.
