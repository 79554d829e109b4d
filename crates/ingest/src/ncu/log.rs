//! What Nsight Compute says beside its tables: warnings and errors.

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

    fn messages(lines: &[&str]) -> Vec<ToolMessage> {
        let mut log = Log::default();
        for line in lines {
            log.take(line.as_bytes());
        }
        log.into_messages()
    }

    #[test]
    fn messages_are_kept_once_and_their_number_is_bounded() {
        assert_eq!(messages(&["==WARNING== twice"; 2]).len(), 1);
        let many: Vec<String> = (0..1000).map(|number| format!("==WARNING== {number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(messages(&many).len(), Log::MOST);
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
