//! environment.
