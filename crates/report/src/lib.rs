//! How results are written down: documents and their validation.
