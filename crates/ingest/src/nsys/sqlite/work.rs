//! Kernels, copies, memsets and graphs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::num::NonZeroU64;

use types::timeline::{Correlation, DeviceWork, LaunchShapeId, NameId, Table, WorkKind};
use types::{Bytes, LaunchShape};

use super::identity::{Queues, Stream};
use super::schema::{COPIES, GRAPHS, KERNELS, MEMSETS};
use super::span;
use super::strings::Strings;
use crate::IngestError;
use crate::cuda;
use crate::nsys::database::{Database, Losses, Malformed, Value};

/// The device work of an export.
pub(crate) struct Work {
    pub(crate) rows: Vec<DeviceWork>,
    pub(crate) launch_shapes: Table<LaunchShape>,
    pub(crate) symbols: BTreeMap<NameId, BTreeSet<NameId>>,
    seen_symbols: HashSet<(NameId, i64)>,
    last_symbol: Option<(NameId, i64)>,
    pub(crate) queues: Queues,
    pub(crate) losses: Losses,
}

impl Work {
    /// Reads every table of device work there is.
    pub(crate) fn read(
        file: &str,
        database: &Database<'_>,
        strings: &mut Strings<'_>,
        queues: Queues,
    ) -> Result<Self, IngestError> {
        let mut work = Self {
            rows: Vec::new(),
            launch_shapes: Table::default(),
            symbols: BTreeMap::new(),
            seen_symbols: HashSet::new(),
            last_symbol: None,
            queues,
            losses: Losses::default(),
        };
        work.read_kernels(file, database, strings)?;
        work.read_copies(file, database, strings)?;
        work.read_memsets(file, database, strings)?;
        work.read_graphs(file, database, strings)?;
        Ok(work)
    }

    fn read_kernels(
        &mut self,
        file: &str,
        database: &Database<'_>,
        strings: &mut Strings<'_>,
    ) -> Result<(), IngestError> {
        let Some((table, layout)) = KERNELS.find(file, database)? else { return Ok(()) };
        let losses = database.rows(table, &layout, |row| {
            let [
                start,
                end,
                device,
                context,
                stream,
                process,
                correlation,
                node,
                name,
                short_name,
                mangled,
                shape @ ..,
            ] = row;
            let name = match strings.find(name.required()?) {
                Some(name) => name,
                None => {
                    short_name.integer()?.and_then(|short| strings.find(short)).unwrap_or_else(|| strings.unknown())
                }
            };
            if let Some(mangled) = mangled.integer()? {
                self.add_symbol(name, mangled, strings);
            }
            let launch = launch_shape(shape)?.map(|shape| self.launch_shapes.place_owned(shape));
            let common = [start, end, device, context, stream, process, correlation];
            self.add(WorkKind::Kernel, name, launch, common, [node, Value::Null])
        });
        self.losses.add(losses);
        Ok(())
    }

    fn read_copies(
        &mut self,
        file: &str,
        database: &Database<'_>,
        strings: &mut Strings<'_>,
    ) -> Result<(), IngestError> {
        let Some((table, layout)) = COPIES.find(file, database)? else { return Ok(()) };
        let losses = database.rows(table, &layout, |row| {
            let [common @ .., node, bytes, kind] = row;
            let (direction, label) = cuda::copy(kind.required()?);
            let name = strings.place(label.as_bytes());
            self.add(WorkKind::Copy(direction), name, None, common, [node, bytes])
        });
        self.losses.add(losses);
        Ok(())
    }

    fn read_memsets(
        &mut self,
        file: &str,
        database: &Database<'_>,
        strings: &mut Strings<'_>,
    ) -> Result<(), IngestError> {
        let Some((table, layout)) = MEMSETS.find(file, database)? else { return Ok(()) };
        let name = strings.place(b"[CUDA memset]");
        let losses = database.rows(table, &layout, |row| {
            let [common @ .., node, bytes] = row;
            self.add(WorkKind::Fill, name, None, common, [node, bytes])
        });
        self.losses.add(losses);
        Ok(())
    }

    fn read_graphs(
        &mut self,
        file: &str,
        database: &Database<'_>,
        strings: &mut Strings<'_>,
    ) -> Result<(), IngestError> {
        let Some((table, layout)) = GRAPHS.find(file, database)? else { return Ok(()) };
        let losses = database.rows(table, &layout, |row| {
            let [common @ .., graph] = row;
            let name = match graph.integer()? {
                Some(graph) => strings.place(format!("[CUDA graph {graph}]").as_bytes()),
                None => strings.place(b"[CUDA graph]"),
            };
            self.add(WorkKind::Graph, name, None, common, [Value::Null, Value::Null])
        });
        self.losses.add(losses);
        Ok(())
    }

    /// Keeps the name in the object file, once for each kernel: a look at a small set for each of millions of rows.
    fn add_symbol(&mut self, name: NameId, mangled: i64, strings: &mut Strings<'_>) {
        if self.last_symbol == Some((name, mangled)) || !self.seen_symbols.insert((name, mangled)) {
            return;
        }
        self.last_symbol = Some((name, mangled));
        if let Some(mangled) = strings.find_if_there(mangled) {
            self.symbols.entry(name).or_default().insert(mangled);
        }
    }

    fn add(
        &mut self,
        kind: WorkKind,
        name: NameId,
        launch: Option<LaunchShapeId>,
        [start, end, device, context, stream, process, correlation]: [Value<'_>; 7],
        [node, bytes]: [Value<'_>; 2],
    ) -> Result<(), Malformed> {
        let (start, duration) = span(start.required()?, end.required()?)?;
        let device = device.narrow()?.ok_or(Malformed)?;
        let (context, stream) = (context.narrow()?, stream.narrow()?);
        let queue = self.queues.place(Stream { device, context, stream, process: process.integer()? });
        let bytes = bytes.narrow::<u64>()?.map(Bytes::new);
        let correlation = correlation.narrow()?.and_then(Correlation::new);
        let graph_node = node.integer()?.and_then(|node| NonZeroU64::new(node as u64));
        let operator = None;
        self.rows.push(DeviceWork {
            kind,
            name,
            queue,
            launch,
            start,
            duration,
            correlation,
            operator,
            bytes,
            graph_node,
        });
        Ok(())
    }
}

/// A launch shape from registers, grid, block and shared memory; `None` where a version has no grid.
fn launch_shape(
    [registers, gx, gy, gz, bx, by, bz, fixed, asked]: [Value<'_>; 9],
) -> Result<Option<LaunchShape>, Malformed> {
    let three = |x: Value<'_>, y: Value<'_>, z: Value<'_>| -> Result<Option<[u32; 3]>, Malformed> {
        Ok(match (x.narrow()?, y.narrow()?, z.narrow()?) {
            (Some(x), Some(y), Some(z)) => Some([x, y, z]),
            _ => None,
        })
    };
    let (Some(grid), Some(block)) = (three(gx, gy, gz)?, three(bx, by, bz)?) else { return Ok(None) };
    Ok(Some(LaunchShape {
        grid,
        block,
        registers: registers.narrow()?,
        shared_static_bytes: fixed.narrow()?,
        shared_dynamic_bytes: asked.narrow()?,
        shared_total_bytes: None,
    }))
}
