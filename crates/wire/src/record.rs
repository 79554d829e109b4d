//! The records.

/// Begin and length of something, in nanoseconds of one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Begin.
    pub start: u64,
    /// Length.
    pub duration: u64,
}

/// Where device work ran, what launched it, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Ordinal of the device, as the process counts.
    pub device: u32,
    /// CUDA context.
    pub context: u32,
    /// CUDA stream.
    pub stream: u32,
    /// Number of the call that launched it.
    pub correlation: u32,
    /// Node of the graph it belongs to; zero for none.
    pub node: u64,
    /// Time on the device, in the device clock.
    pub span: Span,
}

/// How a kernel was launched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block, fixed at compile time.
    pub shared_static: u32,
    /// Shared memory of a block, asked for at launch.
    pub shared_dynamic: u32,
}

/// What a range is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A text of the file.
    Text(u32),
    /// A string the application registered; see [`Record::Registered`].
    Registered(u32),
}

/// Counters and their numbers in files.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)+) => {
        /// What a collector counts of its own losses. The last value of each in a file is the one that holds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Counter {
            $($(#[$doc])* $name,)+
            /// A counter of a newer collector.
            Other(u32),
        }

        impl Counter {
            /// All that are known.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its number in files.
            pub const fn number(self) -> u32 {
                match self {
                    $(Self::$name => $number,)+
                    Self::Other(number) => number,
                }
            }

            pub(crate) const fn of(number: u32) -> Self {
                match number {
                    $($number => Self::$name,)+
                    other => Self::Other(other),
                }
            }
        }
    };
}

counters! {
    /// Device records CUPTI dropped because no buffer was free.
    DeviceRecordsDropped = 1,
    /// Calls and ranges not recorded because a thread's log was full.
    HostRecordsDropped = 2,
    /// Threads that got no log because there are too many.
    ThreadsWithoutLog = 3,
    /// Names of domains and registered strings that did not fit.
    NamesDropped = 4,
    /// Texts that were cut.
    TextsCut = 5,
    /// Device records of a kind that is not understood.
    RecordsUnknown = 6,
    /// Device records without times, because their work had not finished.
    RecordsUnfinished = 7,
    /// Bytes that could not be written.
    BytesUnwritten = 8,
    /// Launches seen on the host, inside the window where there is one.
    Launches = 9,
    /// Device records whose times cannot be: an end before the start, or an end without a start.
    TimesInvalid = 10,
    /// Device records with times before recording was switched on, or later than they were fetched.
    TimesOutside = 11,
    /// Launches of graphs that were seen and not timed, see [`Record::GraphsOnly`].
    LaunchesUntimed = 12,
    /// How far times of such launches may be off from the wall clock, in nanoseconds.
    ClocksApart = 13,
}

/// One record. Host times are of the wall clock; device times are of the clock CUPTI reports in, which on Linux is the
/// same, and [`Record::Clocks`] shows whether it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// Whose file it is; the first record.
    Process {
        /// Its number.
        process: u32,
        /// Its parent's number.
        parent: u32,
        /// The name the system shows, without a path.
        name: &'a [u8],
    },
    /// Which process of a distributed run it is, by its launcher's variables.
    Rank {
        /// Its number, from zero.
        rank: u32,
        /// How many there are.
        world: u32,
    },
    /// The collector, and CUPTI where it could be loaded.
    Collector {
        /// What `cuptiGetVersion` says; zero without CUPTI.
        cupti: u32,
        /// Version of the collector.
        version: &'a [u8],
    },
    /// Why something could not be collected.
    Problem {
        /// The code that a function gave back; zero where there is none.
        code: u32,
        /// What could not be done.
        what: &'a [u8],
    },
    /// Clocks read at the same moment.
    Clocks {
        /// The monotonic clock, which shows whether the wall clock was set meanwhile.
        monotonic: u64,
        /// The wall clock.
        wall: u64,
        /// The device clock; zero before there is one.
        device: u64,
    },
    /// A device.
    Device {
        /// Ordinal, as the process counts.
        ordinal: u32,
        /// Its memory.
        memory: u64,
        /// The driver's permanent identifier.
        uuid: [u8; 16],
        /// Its name.
        name: &'a [u8],
    },
    /// A text and its number.
    Text {
        /// The number; unique in the file.
        number: u32,
        /// The text.
        text: &'a [u8],
    },
    /// An NVTX domain and its number.
    Domain {
        /// The number; zero is the default domain and never named.
        number: u32,
        /// Its name.
        text: &'a [u8],
    },
    /// A registered string and its number.
    Registered {
        /// The number.
        number: u32,
        /// The string.
        text: &'a [u8],
    },
    /// Host records from here to the end of the block are of this thread.
    Thread {
        /// The system's number of it.
        thread: u32,
    },
    /// A range was pushed.
    Push {
        /// Its domain.
        domain: u32,
        /// How many were open before, in that domain on that thread.
        depth: u32,
        /// When.
        time: u64,
        /// What it is called.
        name: Name,
    },
    /// A range was popped.
    Pop {
        /// Its domain.
        domain: u32,
        /// How many stay open.
        depth: u32,
        /// When.
        time: u64,
    },
    /// A range was started.
    Start {
        /// Its domain.
        domain: u32,
        /// Its handle.
        handle: u64,
        /// When.
        time: u64,
        /// What it is called.
        name: Name,
    },
    /// A range was ended, on whichever thread.
    End {
        /// Its handle.
        handle: u64,
        /// When.
        time: u64,
    },
    /// A call of the CUDA runtime or driver.
    Call {
        /// The function; a text of the file.
        function: u32,
        /// Ties the call to the work it launched.
        correlation: u32,
        /// When.
        span: Span,
    },
    /// A node of a CUDA graph was made, by capture or by copying another.
    Node {
        /// The node.
        node: u64,
        /// The one it is a copy of; zero for none.
        original: u64,
        /// When.
        time: u64,
    },
    /// Collection started or ended, by the window that was asked for.
    Window {
        /// Whether it started.
        open: bool,
        /// When.
        time: u64,
    },
    /// A kernel.
    Kernel {
        /// Mangled name; a text of the file.
        name: u32,
        /// Where and when.
        place: Place,
        /// How it was launched.
        shape: Shape,
    },
    /// A copy.
    Copy {
        /// CUPTI's number of the direction.
        direction: u8,
        /// Bytes copied.
        bytes: u64,
        /// Where and when.
        place: Place,
    },
    /// A memset.
    Memset {
        /// Bytes filled.
        bytes: u64,
        /// Where and when.
        place: Place,
    },
    /// A whole graph, where graphs are recorded and not their nodes.
    Graph {
        /// CUPTI's number of the graph.
        graph: u32,
        /// Where and when.
        place: Place,
    },
    /// Only launches of CUDA graphs are timed, by events around each: nothing is known of other work on a device. Their times are of the
    /// wall clock, and start when the stream is free for the launch.
    GraphsOnly,
    /// What was lost so far.
    Count {
        /// Of what.
        counter: Counter,
        /// How much.
        value: u64,
    },
    /// The file is complete: the process left through `exit`, and everything was flushed.
    Finish,
}
