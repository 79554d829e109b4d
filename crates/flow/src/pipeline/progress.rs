//! What a run tells while it runs.

use types::Stage;

/// What a run tells while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Something takes a while.
    Doing(&'a str),
    /// One more inference of so many starts, or gets to a stage.
    Inference {
        /// Done so far.
        done: u64,
        /// In all.
        total: u64,
        /// What it is for.
        pass: Pass,
        /// The input.
        input: &'a str,
        /// The stage that starts; absent before the first, and where stages are too short to tell of.
        stage: Option<Stage>,
    },
    /// Something a user should know.
    Note(&'a str),
    /// What a command printed just now.
    Output(&'a [u8]),
}

types::named! {
    /// What an inference is for, as a person calls it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Pass {
        /// To warm up.
        WarmUp = "warming up",
        /// For its times.
        Measuring = "measuring",
        /// For its operators.
        Tracing = "recording operators",
    }
}
