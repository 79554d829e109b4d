//! Workload settings as a user gives them, and what they resolve to for one model.

use std::fmt::Display;

use network::{Model, NetworkError};
use serde::Deserialize;
use types::{
    AttentionKind, DType, Exit, Failure, ImageWorkload, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind,
    Workload,
};

/// Longest prompt or generation that is accepted.
const MOST_TOKENS: u64 = 100_000_000;

/// Longest side of an image that is accepted.
const LONGEST_SIDE: u64 = 1_000_000;

/// How much longer than wide, or wider than long, the published image processors let an image be.
const MOST_ELONGATED: u64 = 200;

/// Largest batch that is accepted.
const LARGEST_BATCH: u64 = 1_000_000;

/// A workload as configured. What is `None` is derived: image settings are ignored by models without vision, and of
/// `seq_len` and `text_tokens`, and of `max_new_tokens` and `decode_steps`, one may be left open.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSettings {
    /// Name of the profile.
    pub profile_id: String,
    /// What it stands for.
    pub description: String,
    /// What the pages look like.
    pub doc_kind: PageKind,
    /// Pages of one request.
    pub num_pages: u64,
    /// Requests processed together.
    pub batch: u64,
    /// Element type; the model's own when open.
    pub dtype: Option<String>,
    /// How attention is computed.
    pub attention: AttentionKind,
    /// Positions whose logits prefill computes.
    pub logits: LogitsKind,
    /// How tokens spread over experts.
    pub routing: RoutingKind,
    /// Side of the global view.
    pub base_size: Option<u64>,
    /// Side of a tile.
    pub image_size: Option<u64>,
    /// Whether pages are cut into tiles at all.
    pub crop_mode: Option<bool>,
    /// Tiles across and down.
    pub crop_grid: Option<[u64; 2]>,
    /// Pixels across and down of an image, for models that resize images of any shape by a rule of their own.
    pub image_pixels: Option<[u64; 2]>,
    /// Prompt tokens that are no image tokens.
    pub text_tokens: Option<u64>,
    /// All prompt tokens.
    pub seq_len: Option<u64>,
    /// Tokens generated.
    pub max_new_tokens: Option<u64>,
    /// Decode forward passes.
    pub decode_steps: Option<u64>,
    /// How weights and the cache are stored.
    #[serde(default)]
    pub quantisation: Quantisation,
    /// Over how many devices the model is spread.
    #[serde(default)]
    pub parallel: Parallel,
}

/// Why settings are no workload, with the key to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A setting out of range, one that is missing, or two that contradict each other.
    #[error("{0}")]
    Setting(String),
    /// Images the model cannot take.
    #[error("workload: {0}")]
    Image(#[source] NetworkError),
}

impl WorkloadError {
    fn range(key: &str, found: impl Display, expected: impl Display) -> Self {
        Self::Setting(format!("workload.{key} is {found}; this model expects {expected}"))
    }

    fn missing(key: &str, model: &str) -> Self {
        Self::Setting(format!("workload.{key} is not set; {model} needs it"))
    }

    fn contradiction(one: &str, other: &str, why: &str) -> Self {
        Self::Setting(format!("workload.{one} and workload.{other} contradict each other: {why}"))
    }
}

impl Failure for WorkloadError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

impl WorkloadSettings {
    /// One request of text: so many prompt tokens, so many generated, with flash attention and the logits of the last position, as
    /// serving engines compute them.
    pub fn of_text(prompt_tokens: u64, new_tokens: u64) -> Self {
        Self {
            profile_id: format!("text-{prompt_tokens}-{new_tokens}"),
            description: String::new(),
            doc_kind: PageKind::Unknown,
            num_pages: 1,
            batch: 1,
            dtype: None,
            attention: AttentionKind::Flash,
            logits: LogitsKind::Last,
            routing: RoutingKind::Balanced,
            base_size: None,
            image_size: None,
            crop_mode: None,
            crop_grid: None,
            image_pixels: None,
            text_tokens: Some(prompt_tokens),
            seq_len: None,
            max_new_tokens: Some(new_tokens),
            decode_steps: None,
            quantisation: Quantisation::default(),
            parallel: Parallel::default(),
        }
    }

    /// Derives what is open and checks what is given, for `model` whose weights are published as `published`.
    pub fn resolve(&self, model: &Model, published: DType) -> Result<Workload, WorkloadError> {
        let range = |key: &'static str, found: u64, allowed: std::ops::RangeInclusive<u64>| {
            if allowed.contains(&found) {
                return Ok(found);
            }
            let (least, most) = (allowed.start(), allowed.end());
            let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
            Err(WorkloadError::range(key, found, expected))
        };
        let batch = range("batch", self.batch, 1..=LARGEST_BATCH)?;
        let pages_wanted = if model.needs_images() { 1..=10_000 } else { 0..=10_000 };
        let num_pages = range("num_pages", self.num_pages, pages_wanted)?;
        let dtype = match &self.dtype {
            None => published,
            Some(text) => text
                .parse()
                .map_err(|error: types::UnknownDType| WorkloadError::range("dtype", format!("`{text}`"), error))?,
        };
        if !matches!(dtype, DType::Fp64 | DType::Fp32 | DType::Fp16 | DType::Bf16 | DType::Fp8) {
            return Err(WorkloadError::range("dtype", dtype, "fp64, fp32, fp16, bf16 or fp8"));
        }
        check_quantisation(&self.quantisation)?;
        let image = self.image(model)?;
        let num_pages = if model.takes_images() && image.is_none() { 0 } else { num_pages };
        let image_tokens = image.map_or(0, |image| image.image_tokens * num_pages);
        let (text_tokens, seq_len) = self.prompt(image_tokens)?;
        let (max_new_tokens, decode_steps) = self.generation()?;
        if model.takes_tokens() {
            let lengths = model.prompt_length().map_or(1..=MOST_TOKENS, |only| only..=only);
            range("seq_len", seq_len, lengths)?;
            range("max_new_tokens", max_new_tokens, 1..=model.most_tokens().unwrap_or(MOST_TOKENS))?;
            if model.cache().is_none() {
                // An encoder reads its text once.
                range("decode_steps", decode_steps, 0..=0)?;
            }
        } else {
            range("seq_len", seq_len, 0..=0)?;
            range("decode_steps", decode_steps, 0..=0)?;
        }
        Ok(Workload {
            profile_id: self.profile_id.clone(),
            description: self.description.clone(),
            doc_kind: self.doc_kind,
            num_pages,
            batch,
            image,
            text_tokens,
            seq_len,
            max_new_tokens,
            decode_steps,
            dtype,
            attention: self.attention,
            logits: self.logits,
            routing: self.routing,
            quantisation: Quantisation {
                kv: self.quantisation.kv.or(model.cache().and_then(|cache| cache.dtype)),
                ..self.quantisation
            },
            parallel: self.parallel,
        })
    }

    fn image(&self, model: &Model) -> Result<Option<ImageWorkload>, WorkloadError> {
        // A model that reads images where there are any is asked about text where the workload has none.
        let is_text = self.num_pages == 0 || (self.image_pixels.is_none() && self.base_size.is_none());
        if !model.takes_images() || (!model.needs_images() && is_text) {
            return Ok(None);
        }
        let needed =
            |key: &str, value: Option<u64>| value.ok_or_else(|| WorkloadError::missing(key, "a vision-language model"));
        // A shape that any rule takes: it only says whether the model has one.
        if model.resized([1024, 1024]).is_some() {
            return self.any_shape(model).map(Some);
        }
        let base_size = needed("base_size", self.base_size)?;
        let image_size = needed("image_size", self.image_size)?;
        let crop_grid = match (self.crop_mode, self.crop_grid) {
            (Some(false), Some(grid)) if grid != [1, 1] => {
                let why = format!("tiling is off, but the grid is {} x {}", grid[0], grid[1]);
                return Err(WorkloadError::contradiction("crop_mode", "crop_grid", &why));
            }
            (_, grid) => grid.unwrap_or([1, 1]),
        };
        let mut image = ImageWorkload { base_size, image_size, crop_grid, image_tokens: 0, pixels: None };
        model.check_image(&image).map_err(WorkloadError::Image)?;
        image.image_tokens = model.image_tokens(base_size, image_size, crop_grid).unwrap_or(0);
        Ok(Some(image))
    }

    /// An image that the model resizes by its own rule.
    fn any_shape(&self, model: &Model) -> Result<ImageWorkload, WorkloadError> {
        let square = self.base_size.map(|side| [side, side]);
        let [width, height] = self
            .image_pixels
            .or(square)
            .ok_or_else(|| WorkloadError::missing("image_pixels", "a model that resizes images"))?;
        let fits = |side: u64| (1..=LONGEST_SIDE).contains(&side);
        if !fits(width) || !fits(height) || width.max(height) > MOST_ELONGATED * width.min(height) {
            let expected = format!("sides of 1 to {LONGEST_SIDE}, one at most {MOST_ELONGATED} times the other");
            return Err(WorkloadError::range("image_pixels", format!("[{width}, {height}]"), expected));
        }
        model.resized([width, height]).ok_or_else(|| WorkloadError::missing("base_size", "this model"))
    }

    /// Text tokens and all prompt tokens; setting either gives the other.
    fn prompt(&self, image_tokens: u64) -> Result<(u64, u64), WorkloadError> {
        match (self.text_tokens, self.seq_len) {
            (None, None) => Err(WorkloadError::missing("text_tokens", "every workload")),
            (Some(text), None) => Ok((text, text.saturating_add(image_tokens))),
            (text, Some(all)) => {
                let expected = || format!("at least the {image_tokens} image tokens");
                let derived = all.checked_sub(image_tokens);
                let derived = derived.ok_or_else(|| WorkloadError::range("seq_len", all, expected()))?;
                match text {
                    Some(text) if text != derived => {
                        let why = format!("{all} tokens minus {image_tokens} image tokens is {derived}, not {text}");
                        Err(WorkloadError::contradiction("seq_len", "text_tokens", &why))
                    }
                    _ => Ok((derived, all)),
                }
            }
        }
    }

    /// Tokens generated and decode passes; prefill yields the first token.
    fn generation(&self) -> Result<(u64, u64), WorkloadError> {
        match (self.max_new_tokens, self.decode_steps) {
            (None, None) => Err(WorkloadError::missing("max_new_tokens", "every workload")),
            (Some(tokens), None) => Ok((tokens, tokens.saturating_sub(1))),
            (None, Some(steps)) => Ok((steps.saturating_add(1), steps)),
            (Some(tokens), Some(steps)) if tokens == steps.saturating_add(1) => Ok((tokens, steps)),
            (Some(tokens), Some(steps)) => {
                let why = format!("{tokens} tokens take {} decode steps, not {steps}", tokens.saturating_sub(1));
                Err(WorkloadError::contradiction("max_new_tokens", "decode_steps", &why))
            }
        }
    }
}

/// Which element types stand where.
fn check_quantisation(quantisation: &Quantisation) -> Result<(), WorkloadError> {
    let one_of = |key: &'static str, found: Option<DType>, allowed: &[DType]| match found {
        Some(found) if !allowed.contains(&found) => {
            let names: Vec<&str> = allowed.iter().map(|dtype| dtype.name()).collect();
            Err(WorkloadError::range(key, found, format!("{} or null", names.join(", "))))
        }
        _ => Ok(()),
    };
    let narrow = [DType::Bf16, DType::Fp16, DType::Fp8, DType::Int8, DType::Fp4, DType::Int4];
    one_of("quantisation.weights", quantisation.weights, &narrow)?;
    one_of("quantisation.activations", quantisation.activations, &[DType::Fp8, DType::Int8, DType::Fp4, DType::Int4])?;
    one_of(
        "quantisation.kv",
        quantisation.kv,
        &[DType::Fp32, DType::Bf16, DType::Fp16, DType::Fp8, DType::Int8, DType::Int4],
    )?;
    if quantisation.group == Some(0) {
        return Err(WorkloadError::range("quantisation.group", 0, "at least 1, or null for one scale per row"));
    }
    match (quantisation.activations, quantisation.weights) {
        (Some(_), None) => {
            let why = "quantised activations require quantised weights";
            Err(WorkloadError::contradiction("quantisation.activations", "quantisation.weights", why))
        }
        _ => Ok(()),
    }
}
