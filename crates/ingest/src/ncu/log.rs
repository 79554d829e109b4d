//! What Nsight Compute says beside its tables: warnings, errors, and why nothing was profiled.

use std::collections::HashSet;

/// How serious the tool takes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageLevel {
    /// `==WARNING==`.
    Warning,
    /// `==ERROR==`.
    Error,
}

/// A warning or an error, in the tool's own words. May name files of the machine it ran on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolMessage {
    /// How serious.
    pub level: MessageLevel,
    /// The words, without the mark before them.
    pub text: String,
}

/// Why a run of the profiler has no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NothingReason {
    /// `ERR_NVGPUCTRPERM`: the user may not read hardware counters.
    CountersForbidden,
    /// Another program holds the hardware counters.
    CountersBusy,
    /// The profiled program ended with an error.
    ProgramFailed,
    /// No range matched the filter, or none could be replayed.
    NoRange,
    /// No kernel ran, or none matched the filter.
    NoKernel,
    /// The log does not say.
    NotSaid,
}

/// A run of the profiler that profiled nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NothingProfiled {
    /// Why, as far as the messages tell.
    pub reason: NothingReason,
    /// What the tool said.
    pub messages: Vec<ToolMessage>,
}

/// Texts by which a reason is known, most telling first: a run without permission also says that it saw no kernel.
const REASONS: [(&str, NothingReason); 5] = [
    ("ERR_NVGPUCTRPERM", NothingReason::CountersForbidden),
    ("driver resource was unavailable", NothingReason::CountersBusy),
    ("application returned an error code", NothingReason::ProgramFailed),
    ("No ranges were profiled", NothingReason::NoRange),
    ("No kernels were profiled", NothingReason::NoKernel),
];

impl NothingReason {
    /// What the user can do about it.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::CountersForbidden => {
                "on the host, load the NVIDIA kernel module with NVreg_RestrictProfilingToAdminUsers=0; in a container, \
                 start it with --cap-add=SYS_ADMIN"
            }
            Self::CountersBusy => {
                "stop other profilers and monitoring such as DCGM on this GPU, or pause their counters"
            }
            Self::ProgramFailed => "run the program without the profiler first",
            Self::NoRange => {
                "a push/pop range is named with a slash behind it (`A/`, `domain@A/`); its work must begin and end inside, \
                 so synchronise before it closes"
            }
            Self::NoKernel => "check the kernel filter, and profile child processes too (--target-processes all)",
            Self::NotSaid => "look for warnings and errors in the profiler's log",
        }
    }
}

impl NothingProfiled {
    pub(super) fn new(messages: Vec<ToolMessage>) -> Self {
        let said = |part: &str| messages.iter().any(|message| message.text.contains(part));
        let reason = REASONS.iter().find(|(part, _)| said(part)).map_or(NothingReason::NotSaid, |(_, reason)| *reason);
        Self { reason, messages }
    }
}

/// Messages gathered from the lines of a log.
#[derive(Default)]
pub(super) struct Log {
    messages: Vec<ToolMessage>,
    seen: HashSet<ToolMessage>,
    /// Whether any line has the tool's mark.
    pub(super) is_of_tool: bool,
}

impl Log {
    /// A program can make the tool repeat itself without end; this many different messages are kept.
    const MOST: usize = 200;

    /// Whether a line is the tool's own.
    pub(super) fn take(&mut self, line: &[u8]) -> bool {
        let Some(rest) = line.strip_prefix(b"==") else { return false };
        let line = String::from_utf8_lossy(rest);
        let Some((mark, text)) = line.split_once("==") else { return false };
        let level = match mark {
            "WARNING" => MessageLevel::Warning,
            "ERROR" => MessageLevel::Error,
            "PROF" | "INFO" => {
                self.is_of_tool = true;
                return true;
            }
            _ => return false,
        };
        self.is_of_tool = true;
        let message = ToolMessage { level, text: text.trim().to_owned() };
        if self.messages.len() < Self::MOST && self.seen.insert(message.clone()) {
            self.messages.push(message);
        }
        true
    }

    /// What was gathered.
    pub(super) fn into_messages(self) -> Vec<ToolMessage> {
        self.messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(lines: &[&str]) -> NothingProfiled {
        let mut log = Log::default();
        for line in lines {
            log.take(line.as_bytes());
        }
        NothingProfiled::new(log.into_messages())
    }

    #[test]
    fn the_most_telling_message_gives_the_reason() {
        let forbidden = nothing(&[
            "==PROF== Connected to process 12 (/opt/program)",
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
            "==WARNING== No kernels were profiled.",
        ]);
        assert_eq!((forbidden.reason, forbidden.messages.len()), (NothingReason::CountersForbidden, 2));
        assert_eq!(nothing(&["==WARNING== No kernels were profiled."]).reason, NothingReason::NoKernel);
        assert_eq!(
            nothing(&["==ERROR== The application returned an error code (11)."]).reason,
            NothingReason::ProgramFailed
        );
        assert_eq!(nothing(&["==PROF== Disconnected from process 12"]).reason, NothingReason::NotSaid);
    }

    #[test]
    fn messages_are_kept_once_and_their_number_is_bounded() {
        assert_eq!(nothing(&["==WARNING== twice"; 2]).messages.len(), 1);
        let many: Vec<String> = (0..1000).map(|number| format!("==WARNING== {number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(nothing(&many).messages.len(), Log::MOST);
    }

    #[test]
    fn a_line_of_the_program_is_not_the_tools() {
        let mut log = Log::default();
        for line in ["== step 1 ==", "==12345== Memcheck", "==", "done"] {
            assert!(!log.take(line.as_bytes()), "{line}");
        }
        assert!(!log.is_of_tool);
    }
}
