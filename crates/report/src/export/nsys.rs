//! A timeline as Nsight Systems exports one: the tables and columns that tools built on such exports read. What is not
//! known is null, and tables about the machine, its user and its environment are left out.

use std::collections::HashMap;

use types::timeline::{CopyDirection, DeviceWork, NameId, RangeStyle, Timeline, WorkKind};

use super::database::{Database, Value};

/// Version of the schema these tables are of.
const SCHEMA: &str = "3.20.3";
const PUSH_POP: i64 = 59;
const START_END: i64 = 60;
const DOMAIN_CREATE: i64 = 75;

/// A SQLite file with the rows of a timeline; `short_name` says the short name of a kernel.
pub fn nsys_sqlite(timeline: &Timeline, short_name: fn(&str) -> String) -> Vec<u8> {
    let mut database = Database::new();
    let mut strings = Strings::default();
    kernels(&mut database, timeline, short_name, &mut strings);
    copies(&mut database, timeline);
    memsets(&mut database, timeline);
    graphs(&mut database, timeline);
    calls(&mut database, timeline, &mut strings);
    ranges(&mut database, timeline);
    machine(&mut database, timeline);
    database.add(
        "StringIds",
        ["id INTEGER NOT NULL PRIMARY KEY", "value TEXT NOT NULL"],
        strings.texts.iter().map(|text| [Value::Null, Value::Text(text)]),
    );
    database.into_bytes()
}

/// Texts by number, counted from one.
#[derive(Default)]
struct Strings {
    texts: Vec<String>,
    numbers: HashMap<String, i64>,
}

impl Strings {
    fn number(&mut self, text: &str) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.texts.push(text.to_owned());
        let number = self.texts.len() as i64;
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Machine, process and thread in one number, as exports pack them.
fn packed(process: Option<u32>, thread: Option<u64>) -> Value<'static> {
    let process = i64::from(process.unwrap_or(0)) & 0xff_ffff;
    Value::Integer(1 << 48 | process << 24 | (thread.unwrap_or(0) & 0xff_ffff) as i64)
}

/// What all tables of device work start with.
fn place(timeline: &Timeline, work: &DeviceWork) -> [Value<'static>; 7] {
    let queue = &timeline.queues[work.queue.0 as usize];
    [
        work.start.get().into(),
        work.end().get().into(),
        queue.device.into(),
        queue.context.into(),
        queue.stream.into(),
        work.correlation.map(|number| number.0.get() as i64).into(),
        queue.process.map_or(Value::Null, |process| packed(Some(process), None)),
    ]
}

const PLACE: [&str; 7] = [
    "start INTEGER NOT NULL",
    "end INTEGER NOT NULL",
    "deviceId INTEGER NOT NULL",
    "contextId INTEGER",
    "streamId INTEGER",
    "correlationId INTEGER",
    "globalPid INTEGER",
];

/// Two lists of columns as one.
fn joined<T: Copy, const A: usize, const B: usize, const N: usize>(first: [T; A], second: [T; B]) -> [T; N] {
    const { assert!(A + B == N) };
    std::array::from_fn(|place| if place < A { first[place] } else { second[place - A] })
}

fn of_kind(timeline: &Timeline, wanted: impl Fn(WorkKind) -> bool) -> impl Iterator<Item = &DeviceWork> {
    timeline.work.iter().filter(move |work| wanted(work.kind))
}

fn node(work: &DeviceWork) -> Value<'static> {
    work.graph_node.map(|node| node.get() as i64).into()
}

fn bytes(work: &DeviceWork) -> Value<'static> {
    work.bytes.and_then(|bytes| i64::try_from(bytes.get()).ok()).into()
}

fn kernels(database: &mut Database, timeline: &Timeline, short_name: fn(&str) -> String, strings: &mut Strings) {
    let columns = joined::<_, 7, 12, 19>(
        PLACE,
        [
            "demangledName INTEGER NOT NULL",
            "shortName INTEGER NOT NULL",
            "registersPerThread INTEGER",
            "gridX INTEGER",
            "gridY INTEGER",
            "gridZ INTEGER",
            "blockX INTEGER",
            "blockY INTEGER",
            "blockZ INTEGER",
            "staticSharedMemory INTEGER",
            "dynamicSharedMemory INTEGER",
            "graphNodeId INTEGER",
        ],
    );
    let mut names: HashMap<NameId, [i64; 2]> = HashMap::new();
    let rows = of_kind(timeline, |kind| kind == WorkKind::Kernel).map(|work| {
        let [long, short] = *names.entry(work.name).or_insert_with(|| {
            let name = timeline.name(work.name);
            [strings.number(name), strings.number(&short_name(name))]
        });
        let shape = work.launch.map(|shape| timeline.launch_shapes.get(shape));
        let side = |of: fn(&types::LaunchShape) -> u32| Value::from(shape.map(of));
        joined(
            place(timeline, work),
            [
                long.into(),
                short.into(),
                shape.and_then(|shape| shape.registers).into(),
                side(|shape| shape.grid[0]),
                side(|shape| shape.grid[1]),
                side(|shape| shape.grid[2]),
                side(|shape| shape.block[0]),
                side(|shape| shape.block[1]),
                side(|shape| shape.block[2]),
                shape.and_then(|shape| shape.shared_static_bytes).into(),
                shape.and_then(|shape| shape.shared_dynamic_bytes).into(),
                node(work),
            ],
        )
    });
    database.add("CUPTI_ACTIVITY_KIND_KERNEL", columns, rows);
}

fn copies(database: &mut Database, timeline: &Timeline) {
    let columns = joined::<_, 7, 3, 10>(PLACE, ["bytes INTEGER", "copyKind INTEGER NOT NULL", "graphNodeId INTEGER"]);
    let rows = of_kind(timeline, |kind| matches!(kind, WorkKind::Copy(_))).map(|work| {
        // CUPTI's numbers.
        let kind: i64 = match work.kind {
            WorkKind::Copy(CopyDirection::HostToDevice) => 1,
            WorkKind::Copy(CopyDirection::DeviceToHost) => 2,
            WorkKind::Copy(CopyDirection::DeviceToDevice) => 8,
            WorkKind::Copy(CopyDirection::HostToHost) => 9,
            WorkKind::Copy(CopyDirection::PeerToPeer) => 10,
            _ => 0,
        };
        joined(place(timeline, work), [bytes(work), kind.into(), node(work)])
    });
    database.add("CUPTI_ACTIVITY_KIND_MEMCPY", columns, rows);
}

fn memsets(database: &mut Database, timeline: &Timeline) {
    let columns = joined::<_, 7, 2, 9>(PLACE, ["bytes INTEGER", "graphNodeId INTEGER"]);
    let rows = of_kind(timeline, |kind| kind == WorkKind::Fill);
    let rows = rows.map(|work| joined(place(timeline, work), [bytes(work), node(work)]));
    database.add("CUPTI_ACTIVITY_KIND_MEMSET", columns, rows);
}

fn graphs(database: &mut Database, timeline: &Timeline) {
    let columns = joined::<_, 7, 1, 8>(PLACE, ["graphId INTEGER"]);
    let rows = of_kind(timeline, |kind| kind == WorkKind::Graph).map(|work| {
        let digits: String = timeline.name(work.name).chars().filter(char::is_ascii_digit).collect();
        joined(place(timeline, work), [digits.parse::<i64>().ok().into()])
    });
    database.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", columns, rows);
}

fn thread(timeline: &Timeline, thread: types::timeline::ThreadId) -> Value<'static> {
    let thread = &timeline.threads[thread.0 as usize];
    packed(thread.process, thread.thread)
}

fn calls(database: &mut Database, timeline: &Timeline, strings: &mut Strings) {
    let columns = [
        "start INTEGER NOT NULL",
        "end INTEGER NOT NULL",
        "globalTid INTEGER",
        "correlationId INTEGER",
        "nameId INTEGER NOT NULL",
    ];
    let rows = timeline.calls.iter().map(|call| {
        [
            call.start.get().into(),
            call.end().get().into(),
            thread(timeline, call.thread),
            call.correlation.map(|number| number.0.get() as i64).into(),
            strings.number(timeline.name(call.name)).into(),
        ]
    });
    database.add("CUPTI_ACTIVITY_KIND_RUNTIME", columns, rows);
}

fn ranges(database: &mut Database, timeline: &Timeline) {
    let columns = [
        "start INTEGER NOT NULL",
        "end INTEGER",
        "eventType INTEGER NOT NULL",
        "text TEXT",
        "globalTid INTEGER",
        "textId INTEGER",
        "domainId INTEGER",
    ];
    let mut domains: Vec<(Option<u32>, NameId)> = Vec::new();
    let mut created = Vec::new();
    let mut number = |range: &types::timeline::Range| -> i64 {
        let Some(domain) = range.domain else { return 0 };
        let process = timeline.threads[range.thread.0 as usize].process;
        match domains.iter().position(|known| *known == (process, domain)) {
            Some(place) => place as i64 + 1,
            None => {
                domains.push((process, domain));
                created.push((range.start, range.thread, domain, domains.len() as i64));
                domains.len() as i64
            }
        }
    };
    let numbers: Vec<i64> = timeline.ranges.iter().map(&mut number).collect();
    let domain_rows = created.iter().map(|(start, of, domain, number)| {
        [
            start.get().into(),
            Value::Null,
            DOMAIN_CREATE.into(),
            timeline.name(*domain).into(),
            thread(timeline, *of),
            Value::Null,
            (*number).into(),
        ]
    });
    let rows = timeline.ranges.iter().zip(&numbers).map(|(range, number)| {
        let kind = match range.style {
            RangeStyle::PushPop => PUSH_POP,
            RangeStyle::StartEnd => START_END,
        };
        [
            range.start.get().into(),
            range.end.map(|end| end.get()).into(),
            kind.into(),
            timeline.name(range.name).into(),
            thread(timeline, range.thread),
            Value::Null,
            (*number).into(),
        ]
    });
    database.add("NVTX_EVENTS", columns, domain_rows.chain(rows));
}

fn machine(database: &mut Database, timeline: &Timeline) {
    let number = |device: &types::Device| device.id.as_str().strip_prefix("cuda:").and_then(|n| n.parse::<i64>().ok());
    let devices = timeline.devices.iter().map(|device| {
        [
            number(device).into(),
            device.name.as_str().into(),
            device.memory_bytes.and_then(|memory| i64::try_from(memory.get()).ok()).into(),
            device.uuid.as_deref().map(|uuid| uuid.trim_start_matches("GPU-")).into(),
        ]
    });
    database.add("TARGET_INFO_GPU", ["id INTEGER NOT NULL", "name TEXT", "totalMemory INTEGER", "uuid TEXT"], devices);
    let zero = [[timeline.clock.unix_ns_at_zero.map(|zero| zero.get()).into()]];
    database.add("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs INTEGER"], zero.into_iter());
    let product = timeline.tool.as_deref().unwrap_or(timeline.format.name());
    let facts = [["EXPORT_PRODUCT_NAME", product], ["EXPORT_SCHEMA_VERSION", SCHEMA]];
    let facts = facts.into_iter().map(|[name, value]| [name.into(), value.into()]);
    database.add("META_DATA_EXPORT", ["name TEXT NOT NULL", "value TEXT"], facts);
}
