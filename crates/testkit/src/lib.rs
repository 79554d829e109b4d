//! Programs that only tests start, in `src/bin`.
