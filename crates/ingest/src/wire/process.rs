//! One process's records as rows of the timeline.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU64;

use ::wire::{Name, Record, Shape, Span};
use types::timeline::{Correlation, DeviceQueue, DeviceWork, HostCall, NameId, Range, RangeStyle, ThreadId, WorkKind};
use types::{Bytes, LaunchShape, Nanos};

use super::Reader;
use super::contents::Contents;
use super::window::Windows;
use crate::capture::{self, NodeCreation};
use crate::cuda;
use crate::demangle::demangle;

impl Reader {
    /// Adds everything of a file.
    pub(super) fn take(&mut self, contents: &Contents<'_>) {
        self.losses.count_file(contents);
        let windows = Windows::of(contents, self.zero);
        let mut devices = HashMap::new();
        for (ordinal, memory, uuid, name) in &contents.devices {
            devices.insert(*ordinal, self.device(*ordinal, *memory, *uuid, name));
        }
        let first_range = self.timeline.ranges.len();
        let (first_call, first_work) = (self.timeline.calls.len(), self.timeline.work.len());
        self.take_host(contents);
        let nodes = self.nodes(contents);
        // Before ranges are cut to windows: a graph is most often captured outside of them.
        let ranges = self.timeline.ranges.split_off(first_range);
        capture::add(&mut self.timeline, Some(contents.process), &nodes, &ranges);
        self.take_work(contents, &devices, windows.is_some(), first_call);
        self.count_launches(&nodes, first_call, first_work);
        match windows {
            Some(windows) => {
                self.losses.ranges_clipped += windows.clip(ranges, &mut self.timeline.ranges);
                self.losses.windows += windows.count();
            }
            None => self.timeline.ranges.extend(ranges),
        }
    }

    fn text(&mut self, text: Option<&[u8]>) -> NameId {
        match text {
            Some(text) => self.timeline.names.place(&*String::from_utf8_lossy(text)),
            None => {
                self.losses.names_missing += 1;
                self.timeline.names.place("(name lost)")
            }
        }
    }

    fn take_host(&mut self, contents: &Contents<'_>) {
        let mut functions: HashMap<u32, NameId> = HashMap::new();
        // Places in `ranges` of what is open, with its depth: a pop closes the range that was pushed at its depth, and all
        // above it whose pops were lost.
        let mut open: HashMap<(u32, u32), Vec<(u32, usize)>> = HashMap::new();
        let mut started: HashMap<u64, usize> = HashMap::new();
        for (number, record) in &contents.host {
            let thread = self.thread(contents, *number);
            match *record {
                Record::Push { domain, depth, time, name } => {
                    let Some(start) = self.time(time) else { continue };
                    let stack = open.entry((*number, domain)).or_default();
                    while stack.pop_if(|(other, _)| *other >= depth).is_some() {
                        self.losses.pops_missing += 1;
                    }
                    stack.push((depth, self.timeline.ranges.len()));
                    self.push_range(contents, RangeStyle::PushPop, thread, domain, name, start);
                }
                Record::Pop { domain, depth, time } => {
                    let Some(end) = self.time(time) else { continue };
                    let stack = open.entry((*number, domain)).or_default();
                    while stack.pop_if(|(other, _)| *other > depth).is_some() {
                        self.losses.pops_missing += 1;
                    }
                    match stack.pop_if(|(other, _)| *other == depth) {
                        Some((_, place)) => self.close(place, end),
                        None => self.losses.pushes_missing += 1,
                    }
                }
                Record::Start { domain, handle, time, name } => {
                    let Some(start) = self.time(time) else { continue };
                    started.insert(handle, self.timeline.ranges.len());
                    self.push_range(contents, RangeStyle::StartEnd, thread, domain, name, start);
                }
                Record::End { handle, time } => {
                    let Some(end) = self.time(time) else { continue };
                    match started.remove(&handle) {
                        Some(place) => self.close(place, end),
                        None => self.losses.pushes_missing += 1,
                    }
                }
                Record::Call { function, correlation, span } => {
                    let Some((start, duration)) = self.span(span) else { continue };
                    let name = match functions.get(&function) {
                        Some(name) => *name,
                        None => {
                            let text = contents.texts.get(&function).copied();
                            let whole = text.map(|text| String::from_utf8_lossy(text).into_owned());
                            let name = self.text(whole.as_deref().map(|name| cuda::function(name).as_bytes()));
                            functions.insert(function, name);
                            name
                        }
                    };
                    let correlation = Correlation::new(u64::from(correlation));
                    self.timeline.calls.push(HostCall { name, thread, start, duration, correlation });
                }
                _ => {}
            }
        }
    }

    fn push_range(
        &mut self,
        contents: &Contents<'_>,
        style: RangeStyle,
        thread: ThreadId,
        domain: u32,
        name: Name,
        start: Nanos,
    ) {
        let name = self.text(contents.name(name));
        let domain = (domain != 0).then(|| match contents.domains.get(&domain) {
            Some(text) => self.text(Some(text)),
            None => self.timeline.names.place(&*format!("domain {domain}")),
        });
        self.timeline.ranges.push(Range { style, name, domain, thread, start, end: None });
    }

    fn close(&mut self, place: usize, end: Nanos) {
        if let Some(range) = self.timeline.ranges.get_mut(place) {
            range.end = Some(end.max(range.start));
        }
    }

    /// Device work. Of a process with windows only what was launched inside one, which is what has a recorded call.
    fn take_work(&mut self, contents: &Contents<'_>, devices: &HashMap<u32, u32>, windowed: bool, first_call: usize) {
        let calls = &self.timeline.calls[first_call..];
        let launched: HashSet<u64> = calls.iter().filter_map(|call| Some(call.correlation?.0.get())).collect();
        let ahead = contents.device_ahead();
        let mut kernels: HashMap<u32, NameId> = HashMap::new();
        for record in &contents.work {
            let (Record::Kernel { place, .. }
            | Record::Copy { place, .. }
            | Record::Memset { place, .. }
            | Record::Graph { place, .. }) = record
            else {
                continue;
            };
            if windowed && !launched.contains(&u64::from(place.correlation)) {
                self.losses.outside_window += 1;
                continue;
            }
            let start = i128::from(place.span.start) - ahead;
            let Ok(start) = u64::try_from(start) else {
                self.losses.impossible_times += 1;
                continue;
            };
            let Some((start, duration)) = self.span(Span { start, ..place.span }) else { continue };
            let (kind, name, launch, bytes) = match *record {
                Record::Kernel { name, shape, .. } => {
                    let name = match kernels.get(&name) {
                        Some(name) => *name,
                        None => {
                            let placed = self.kernel(contents.texts.get(&name).copied());
                            kernels.insert(name, placed);
                            placed
                        }
                    };
                    (WorkKind::Kernel, name, Some(launch_shape(&shape)), None)
                }
                Record::Copy { direction, bytes, .. } => {
                    let (direction, label) = cuda::copy(i64::from(direction));
                    (WorkKind::Copy(direction), self.timeline.names.place(label), None, Some(bytes))
                }
                Record::Memset { bytes, .. } => {
                    (WorkKind::Fill, self.timeline.names.place("[CUDA memset]"), None, Some(bytes))
                }
                Record::Graph { graph, .. } => {
                    (WorkKind::Graph, self.timeline.names.place(&*format!("[CUDA graph {graph}]")), None, None)
                }
                _ => continue,
            };
            let queue = self.queue(DeviceQueue {
                process: Some(contents.process),
                rank: contents.rank,
                device: devices.get(&place.device).copied().unwrap_or(place.device),
                context: Some(place.context),
                stream: Some(place.stream),
            });
            let launch = launch.map(|shape| self.timeline.launch_shapes.place_owned(shape));
            self.timeline.work.push(DeviceWork {
                kind,
                name,
                queue,
                launch,
                start,
                duration,
                correlation: Correlation::new(u64::from(place.correlation)),
                operator: None,
                bytes: bytes.map(Bytes::new),
                graph_node: NonZeroU64::new(place.node),
            });
        }
    }

    /// A kernel's readable name, with the one in its object file beside it: other tools are told of it by that.
    fn kernel(&mut self, symbol: Option<&[u8]>) -> NameId {
        let Some(symbol) = symbol else { return self.text(None) };
        let mangled = String::from_utf8_lossy(symbol);
        let readable = demangle(&mangled).unwrap_or_else(|| mangled.to_string());
        let placed = self.text(Some(readable.as_bytes()));
        // One that was cut is the name of nothing.
        if symbol.len() < ::wire::LONGEST_TEXT {
            let symbol = self.timeline.names.place(&*mangled);
            self.timeline.symbols.entry(placed).or_default().insert(symbol);
        }
        placed
    }

    /// Nodes of graphs that were made.
    fn nodes(&mut self, contents: &Contents<'_>) -> Vec<NodeCreation> {
        let mut nodes = Vec::new();
        for (thread, record) in &contents.host {
            let Record::Node { node, original, time } = *record else { continue };
            let thread = self.thread(contents, *thread);
            let (Some(time), Some(node)) = (self.time(time), NonZeroU64::new(node)) else { continue };
            nodes.push(NodeCreation { node, original: NonZeroU64::new(original), thread, time });
        }
        nodes
    }

    /// Launches whose work is missing. A launch that a graph captured makes a node and no work.
    fn count_launches(&mut self, nodes: &[NodeCreation], first_call: usize, first_work: usize) {
        let mut nodes: Vec<(ThreadId, Nanos)> = nodes.iter().map(|node| (node.thread, node.time)).collect();
        nodes.sort_unstable();
        let seen: HashSet<_> = self.timeline.work[first_work..].iter().filter_map(|work| work.correlation).collect();
        for call in &self.timeline.calls[first_call..] {
            let name = self.timeline.names.get(call.name);
            if !name.contains("Launch") {
                continue;
            }
            let first = nodes.partition_point(|node| *node < (call.thread, call.start));
            let captured = nodes.get(first).is_some_and(|(thread, time)| *thread == call.thread && *time <= call.end());
            let ran = call.correlation.is_some_and(|number| seen.contains(&number));
            self.losses.launches += u64::from(!captured);
            self.losses.launches_without_work += u64::from(!captured && !ran);
        }
    }
}

fn launch_shape(shape: &Shape) -> LaunchShape {
    LaunchShape {
        grid: shape.grid,
        block: shape.block,
        registers: Some(shape.registers),
        shared_static_bytes: Some(shape.shared_static),
        shared_dynamic_bytes: Some(shape.shared_dynamic),
        shared_total_bytes: None,
    }
}
