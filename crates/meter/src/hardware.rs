//! The hardware catalogue.
