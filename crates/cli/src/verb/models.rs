//! `llm-perf models`: the built-in models, and what one is made of.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

use flow::model::{self, CacheLayout, LoadedModel};
use serde::Serialize;
use types::{DType, Exit, UserError};

use crate::context::Context;
use crate::resolution;
use crate::screen::{ScreenTable, hanging, terminal_width};
use flow::grouped;

/// List the built-in models, or show one
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Built-in model, config.json, folder with one, or GGUF file
    #[arg(value_name = "NAME|PATH")]
    name: Option<OsString>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One model as JSON.
#[derive(Serialize)]
struct ModelRow {
    name: String,
    about: String,
    /// Where the configuration was published; absent for a file.
    source: Option<&'static str>,
    architecture: &'static str,
    family: &'static str,
    parameters: u64,
    /// Those one token passes through.
    parameters_active: u64,
    parameters_by_module: Vec<(String, u64)>,
    dtype: types::DType,
    layers: u64,
    hidden_size: u64,
    vision: Option<&'static str>,
    mixes_experts: bool,
    /// Of one more position in all layers, while no window is full; absent for networks without a cache.
    kv_bytes_per_token: Option<types::Bytes>,
    /// Layers whose cache stops growing, and where.
    windows: Vec<Window>,
    /// What layers keep between passes, by kind.
    caches: Vec<Cache>,
}

/// Layers that keep the same kind of cache.
#[derive(Clone, Serialize)]
struct Cache {
    /// `full`, `sliding`, `chunked`, `compressed`, `latent`, `linear`, `state-space`, `hybrid`,
    /// `convolution`, `cross`.
    kind: &'static str,
    layers: u64,
    /// Of one more position, while no window is full.
    bytes_per_token: types::Bytes,
    /// Of a sequence, whatever its length.
    bytes_per_sequence: types::Bytes,
    /// Of one position of what an encoder reads.
    bytes_per_source_position: types::Bytes,
}

/// Layers that see a window of positions.
#[derive(Clone, Serialize)]
struct Window {
    positions: u64,
    layers: u64,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let rows = match &arguments.name {
        None => model::PRESETS.iter().map(|preset| row(preset.name.as_ref())).collect::<Result<Vec<_>, _>>()?,
        Some(name) => vec![row(name)?],
    };
    context.messages.print_answer(arguments.json, &rows, || match (&arguments.name, rows.as_slice()) {
        (Some(_), [row]) => detail(row, terminal_width()),
        _ => overview(&rows, terminal_width()),
    })
}

fn row(name: &OsStr) -> Result<ModelRow, UserError> {
    let loaded = model::load(&resolution::model::settings(name))?;
    let preset = model::PRESETS.iter().find(|preset| name == preset.name);
    let facts = loaded.config.facts();
    let parameters = loaded.network.blueprint().parameters_under("");
    let cache = loaded.network.cache();
    Ok(ModelRow {
        name: name.to_string_lossy().into_owned(),
        about: preset.map_or("", |preset| preset.about).to_owned(),
        source: preset.map(|preset| preset.source),
        architecture: facts.class,
        family: loaded.config.family(),
        parameters,
        parameters_active: parameters
            .saturating_sub(loaded.config.decoder().map_or(0, |decoder| decoder.idle_parameters())),
        parameters_by_module: parts(&loaded),
        dtype: loaded.dtype,
        layers: facts.layers,
        hidden_size: facts.width,
        vision: facts.vision_backbone,
        mixes_experts: facts.mixes_experts,
        kv_bytes_per_token: cache.map(|cache| loaded.dtype.bytes_for(cache.elements_per_token())),
        windows: cache.map(windows).unwrap_or_default(),
        caches: cache.map(|cache| caches(cache, loaded.dtype)).unwrap_or_default(),
    })
}

/// Layers by the kind of their cache; states are in single precision but for the inputs of convolutions.
fn caches(cache: &CacheLayout, dtype: DType) -> Vec<Cache> {
    let mut found: Vec<Cache> = Vec::new();
    for layer in &cache.layers {
        let Some(kind) = layer.kind.name() else { continue };
        let growing = dtype.bytes_for(layer.elements + layer.entries);
        let source = dtype.bytes_for(layer.source);
        let fixed = dtype.bytes_for(layer.state[0]) + DType::Fp32.bytes_for(layer.state[1]);
        match found.iter_mut().find(|cache| cache.kind == kind) {
            Some(cache) => {
                cache.layers += 1;
                cache.bytes_per_token += growing;
                cache.bytes_per_sequence += fixed;
                cache.bytes_per_source_position += source;
            }
            None => found.push(Cache {
                kind,
                layers: 1,
                bytes_per_token: growing,
                bytes_per_sequence: fixed,
                bytes_per_source_position: source,
            }),
        }
    }
    found
}

/// Layers with a window, by its length.
fn windows(cache: &CacheLayout) -> Vec<Window> {
    let mut found: Vec<Window> = Vec::new();
    for positions in cache.layers.iter().filter_map(|layer| layer.window) {
        match found.iter_mut().find(|window| window.positions == positions) {
            Some(window) => window.layers += 1,
            None => found.push(Window { positions, layers: 1 }),
        }
    }
    found
}

/// Parameters of the parts a reader would name: at most two steps into the tree.
fn parts(loaded: &LoadedModel) -> Vec<(String, u64)> {
    let blueprint = loaded.network.blueprint();
    let named = blueprint.modules().filter(|(_, entry)| !entry.path.is_empty() && entry.path.split('.').count() <= 2);
    let counted = named.map(|(_, entry)| (entry.path.clone(), blueprint.parameters_under(&entry.path)));
    counted.filter(|(_, count)| *count > 0).collect()
}

fn overview(rows: &[ModelRow], width: Option<usize>) -> String {
    let mut table = ScreenTable::new("NAME | FAMILY | >PARAMETERS | >ACTIVE | >KV/TOKEN | SOURCE | ABOUT");
    for row in rows {
        let (all, active) = (grouped(row.parameters), grouped(row.parameters_active));
        let cache =
            row.kv_bytes_per_token.map_or_else(|| "none".to_owned(), |bytes| format!("{} B", grouped(bytes.get())));
        table.row([&row.name, row.family, &all, &active, &cache, row.source.unwrap_or_default(), &row.about]);
    }
    let families = model::families().collect::<Vec<_>>().join(", ");
    let (table, families) = (table.text(width), hanging(&families, 2, width));
    format!("{table}\nSupported families of config.json (model_type):\n  {families}\n")
}

fn detail(row: &ModelRow, width: Option<usize>) -> String {
    let mut text = format!("{}\n{}\n\n", row.name, hanging(&row.about, 0, width));
    let mut table = ScreenTable::new(" | >");
    if let Some(source) = row.source {
        table.row(["source", source]);
    }
    table.row(["architecture", row.architecture]);
    table.row(["family", row.family]);
    table.row(["parameters", &grouped(row.parameters)]);
    table.row(["active per token", &grouped(row.parameters_active)]);
    table.row(["dtype", row.dtype.name()]);
    table.row(["layers", &row.layers.to_string()]);
    table.row(["hidden size", &row.hidden_size.to_string()]);
    table.row(["vision", row.vision.unwrap_or("none")]);
    table.row(["mixture of experts", if row.mixes_experts { "yes" } else { "no" }]);
    if let Some(bytes) = row.kv_bytes_per_token {
        table.row(["KV cache per token", &format!("{} B", grouped(bytes.get()))]);
    }
    for window in &row.windows {
        table.row([
            &format!("KV cache of {} layers", window.layers),
            &format!("at most {} positions", grouped(window.positions)),
        ]);
    }
    for cache in row.caches.iter().filter(|cache| cache.bytes_per_sequence > types::Bytes::ZERO) {
        let state = format!("{} B per sequence", grouped(cache.bytes_per_sequence.get()));
        table.row([&format!("state of {} {} layers", cache.layers, cache.kind), &state]);
    }
    for cache in row.caches.iter().filter(|cache| cache.bytes_per_source_position > types::Bytes::ZERO) {
        let each = format!("{} B per position of the encoder", grouped(cache.bytes_per_source_position.get()));
        table.row([&format!("KV cache of {} {} layers", cache.layers, cache.kind), &each]);
    }
    let _ = writeln!(text, "{}", table.text(width));
    let mut table = ScreenTable::new("MODULE | >PARAMETERS");
    for (path, count) in &row.parameters_by_module {
        table.row([path, &grouped(*count)]);
    }
    text + &table.text(width)
}
