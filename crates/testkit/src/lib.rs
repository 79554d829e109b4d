//! What the programs that tests start (`src/bin`) share with those tests. Nothing here is part of the tool.

mod random;

pub use random::Random;
