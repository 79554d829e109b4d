//! How a process ended.

use types::Bytes;

/// How a process ended. Shown as words that follow its name: `exited with code 3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// By us, because its time was up.
    OutOfTime,
    /// By us, because it wrote more than it may: this much.
    TooLarge(Bytes),
    /// By the user.
    Interrupted,
}

impl Ending {
    /// Whether it ended by itself and well.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}{}", named(*signal)),
            Self::OutOfTime => f.write_str("reached its time limit and was stopped"),
            Self::TooLarge(size) => write!(f, "was stopped after writing {size}"),
            Self::Interrupted => f.write_str("was interrupted"),
        }
    }
}

fn named(signal: i32) -> &'static str {
    match signal {
        libc::SIGKILL => " (SIGKILL; possibly out of memory)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGTERM => " (SIGTERM)",
        libc::SIGINT => " (SIGINT)",
        libc::SIGBUS => " (SIGBUS)",
        _ => "",
    }
}
