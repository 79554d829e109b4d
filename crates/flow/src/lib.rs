//! What a verb does, as a list of passes.
