//! Operations that are timed: their sizes, the work they do and the features their times are interpolated in.

use types::{DType, Hardware};

use crate::ForecastError;

types::named! {
    /// A kind of operation whose time depends on a few sizes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Family {
        /// `m x k` times `k x n`.
        Gemm = "gemm",
        /// The same, its rows spread over experts.
        GroupedGemm = "grouped_gemm",
        /// Attention of a prompt to itself, causal.
        ContextAttention = "context_attention",
        /// Attention of one new position to the cache.
        GenerationAttention = "generation_attention",
        /// The same as a serving engine calls it, over a cache in blocks.
        PagedAttention = "paged_attention",
        /// Attention of any positions to any others under a mask.
        MaskedAttention = "masked_attention",
        /// A kernel that reads and writes memory from end to end and does little else.
        Elementwise = "elementwise",
        /// The same into another element type.
        Cast = "cast",
        /// The same over a transposed or repeated operand.
        Strided = "strided",
        /// Tensors joined along a dimension, each from end to end.
        Concatenate = "concatenate",
        /// The same of parts of tensors, or of transposed ones.
        ConcatenateStrided = "concatenate_strided",
        /// One number of every row.
        Reduce = "reduce",
        /// The few largest numbers of every row.
        Select = "select",
        /// A copy within the device.
        Copy = "copy",
        /// A copy from the host to the device.
        HostToDevice = "h2d",
    }
}

/// One operation of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct OpShape {
    /// Kind.
    pub family: Family,
    /// Element type of the arithmetic.
    pub dtype: DType,
    /// Sizes, in the order of [`Family::columns`].
    pub sizes: Vec<f64>,
}

/// Kernels of one shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kernels {
    pub(crate) shape: OpShape,
    /// How many are launched, one behind the other.
    pub(crate) count: f64,
}

/// The work of an operation on a device, and where it lies between others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Work {
    /// Microseconds of arithmetic at the peak rate.
    pub(crate) compute_us: f64,
    /// Microseconds of traffic at full bandwidth.
    pub(crate) memory_us: f64,
    /// Bytes that must move.
    pub(crate) bytes: f64,
    /// Base-two logarithms of what its time depends on.
    pub(crate) features: Vec<f64>,
}

/// Rows and columns of the output that one block of a GEMM computes, as most libraries cut it.
const TILE: f64 = 128.0;

impl Family {
    /// Columns of its sizes.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Gemm => &["m", "n", "k"],
            Self::GroupedGemm => &["m", "n", "k", "experts"],
            Self::ContextAttention => &["batch", "length", "heads", "kv_heads", "head_dim", "kv_dtype", "window"],
            Self::GenerationAttention | Self::PagedAttention => {
                &["batch", "kv_length", "heads", "kv_heads", "head_dim", "kv_dtype", "window"]
            }
            Self::MaskedAttention => &["batch", "length", "kv_length", "heads", "kv_heads", "head_dim"],
            Self::Reduce | Self::Select => &["rows", "width"],
            _ => &["bytes"],
        }
    }

    /// The family of that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// Whether its arithmetic runs on the matrix unit.
    fn multiplies(self) -> bool {
        self.kernels() != "other"
    }

    /// What profilers call its kernels, coarsely enough for everybody's names: `gemm`, `attention` or `other`.
    pub(crate) const fn kernels(self) -> &'static str {
        match self {
            Self::Gemm | Self::GroupedGemm => "gemm",
            Self::ContextAttention | Self::GenerationAttention | Self::PagedAttention | Self::MaskedAttention => {
                "attention"
            }
            _ => "other",
        }
    }

    /// Whether it only moves memory of the device: its time has a floor below which size makes no difference.
    pub(crate) fn moves(self) -> bool {
        !self.multiplies() && self.in_memory()
    }

    /// Whether its traffic is that of the device's own memory.
    pub(crate) const fn in_memory(self) -> bool {
        !matches!(self, Self::HostToDevice)
    }

    /// Column that is the same for points of one site: a model brings it, a request does not.
    pub(crate) const fn site(self) -> std::ops::Range<usize> {
        match self {
            Self::Gemm | Self::GroupedGemm => 1..3,
            Self::ContextAttention | Self::GenerationAttention | Self::PagedAttention => 2..5,
            Self::MaskedAttention => 3..6,
            Self::Reduce | Self::Select => 1..2,
            _ => 0..1,
        }
    }
}

impl OpShape {
    /// A GEMM.
    pub fn gemm(dtype: DType, [m, n, k]: [u64; 3]) -> Self {
        Self { family: Family::Gemm, dtype, sizes: [m, n, k].map(|size| size.max(1) as f64).to_vec() }
    }

    /// A memory-bound kernel.
    pub fn elementwise(dtype: DType, bytes: f64) -> Self {
        Self::moving(Family::Elementwise, dtype, bytes)
    }

    /// A kernel of a family that is sized by its bytes.
    pub(crate) fn moving(family: Family, dtype: DType, bytes: f64) -> Self {
        Self { family, dtype, sizes: vec![bytes.max(1.0)] }
    }

    /// A kernel over rows, in single precision as frameworks do sums.
    pub(crate) fn rows(family: Family, rows: f64, width: f64) -> Self {
        Self { family, dtype: DType::Fp32, sizes: vec![rows.max(1.0), width.max(1.0)] }
    }

    /// The nearest thing that a calibration without this family may have.
    pub(crate) fn stand_in(&self) -> Option<Self> {
        let sizes = &self.sizes;
        match self.family {
            Family::Cast | Family::Strided | Family::Concatenate => {
                Some(Self { family: Family::Elementwise, ..self.clone() })
            }
            Family::PagedAttention => Some(Self { family: Family::GenerationAttention, ..self.clone() }),
            Family::ConcatenateStrided => Some(Self { family: Family::Strided, ..self.clone() }),
            Family::Reduce | Family::Select => Some(Self::elementwise(DType::Bf16, 4.0 * sizes[0] * sizes[1])),
            Family::MaskedAttention => {
                let [batch, queries, keys, heads, kv_heads, width] = std::array::from_fn(|index| sizes[index]);
                // A mask does not spare work: every pair is computed, as causal attention over a longer prompt does.
                let (family, length) = if queries > 1.0 {
                    (Family::ContextAttention, (2.0 * queries * keys).sqrt().round())
                } else {
                    (Family::GenerationAttention, keys)
                };
                let sizes = vec![batch, length, heads, kv_heads, width, self.dtype.bits() as f64, 0.0];
                Some(Self { family, dtype: self.dtype, sizes })
            }
            _ => None,
        }
    }

    /// What tells it from other shapes.
    pub fn key(&self) -> Vec<u64> {
        let sizes = self.sizes.iter().map(|size| size.to_bits());
        [self.family as u64, self.dtype as u64].into_iter().chain(sizes).collect()
    }

    /// Operation and element type.
    pub fn group(&self) -> String {
        format!("{} in {}", self.family.name(), self.dtype)
    }

    /// Whether its arithmetic takes longer at the peaks than its traffic.
    pub(crate) fn is_compute_bound(&self, hardware: &Hardware) -> Result<bool, ForecastError> {
        let work = self.work(hardware)?;
        Ok(work.compute_us > work.memory_us)
    }

    /// Its work on `hardware`.
    pub(crate) fn work(&self, hardware: &Hardware) -> Result<Work, ForecastError> {
        let peak = if self.family.multiplies() {
            // A type that the device has no matrix unit for is widened first.
            let widened = || hardware.matrix_peak(DType::Bf16).or_else(|| hardware.matrix_peak(DType::Fp16));
            let is_narrow = self.dtype.bits() < 16;
            let own = hardware.matrix_peak(self.dtype).or_else(|| widened().filter(|_| is_narrow));
            let peak = own.ok_or_else(|| ForecastError::NoPeak {
                device: hardware.id.clone(),
                dtype: self.dtype,
                op: self.family.name(),
            })?;
            peak.flops.get()
        } else {
            1.0
        };
        let multiprocessors = f64::from(hardware.sm_count.max(1));
        let element = self.dtype.bits() as f64 / 8.0;
        // Narrow operands are multiplied into wider results: eight bits in, sixteen out.
        let output = element.max(2.0);
        let sizes = &self.sizes;
        let log = |value: f64| value.max(1e-12).log2();
        let (mut flops, bytes, mut features) = match self.family {
            Family::Gemm | Family::GroupedGemm => {
                let (m, n, k) = (sizes[0], sizes[1], sizes[2]);
                let experts = sizes.get(3).copied().unwrap_or(1.0).min(m);
                let bytes = element * (m * k + experts * n * k) + output * m * n;
                // Rows are cut into blocks expert by expert.
                let tiles = experts * (m / experts / TILE).ceil() * (n / TILE).ceil();
                let mut features = vec![log(m), log(n), log(k), log(tiles)];
                if self.family == Family::GroupedGemm {
                    features.push(log(experts));
                }
                (2.0 * m * n * k, bytes, features)
            }
            Family::ContextAttention | Family::GenerationAttention | Family::PagedAttention => {
                let [batch, length, heads, kv_heads, width, kv_bits, window] =
                    std::array::from_fn(|index| sizes.get(index).copied().unwrap_or(1.0));
                let seen = if window > 0.0 { length.min(window) } else { length };
                let cached = 2.0 * kv_heads * width * kv_bits / 8.0;
                let (pairs, bytes, blocks) = if self.family == Family::ContextAttention {
                    // Blocks of queries see whole blocks of keys; the diagonal is computed in full.
                    let rows = (length / TILE).ceil() * TILE;
                    let pairs = if seen < length {
                        (seen + TILE) * rows - seen * seen / 2.0
                    } else {
                        rows * (rows + TILE) / 2.0
                    };
                    let bytes = batch * length * (2.0 * heads * width * element + cached);
                    (pairs, bytes, batch * heads * rows / TILE / multiprocessors)
                } else {
                    (seen, batch * (2.0 * heads * width * element + seen * cached), batch * kv_heads)
                };
                // More or fewer blocks than an eighth, or eight times, the device make no further difference.
                let blocks = if self.family == Family::ContextAttention { blocks.clamp(0.125, 8.0) } else { blocks };
                let features = [batch, length, heads, heads / kv_heads, width, length / seen, kv_bits, blocks, seen];
                (4.0 * batch * heads * width * pairs, bytes, features.map(log).to_vec())
            }
            Family::MaskedAttention => {
                let [batch, queries, keys, heads, kv_heads, width] = std::array::from_fn(|index| sizes[index]);
                let blocks = |positions: f64| (positions / TILE).ceil() * TILE;
                let pairs = if queries > 1.0 { blocks(queries) * blocks(keys) } else { keys };
                // The mask is read and made into numbers too.
                let bytes =
                    element * batch * (2.0 * width * (heads * queries + kv_heads * keys) + 2.0 * queries * keys);
                let features = [batch, queries, keys, heads, heads / kv_heads, width, batch * heads];
                (4.0 * batch * heads * width * pairs, bytes, features.map(log).to_vec())
            }
            Family::Reduce | Family::Select => {
                (0.0, element * sizes[0] * sizes[1], vec![log(sizes[0]), log(sizes[1]), log(sizes[0] * sizes[1])])
            }
            _ => (0.0, sizes[0], vec![log(sizes[0])]),
        };
        if self.family == Family::ContextAttention {
            // The longest block runs on one multiprocessor from its first key to its last.
            let seen = if sizes[6] > 0.0 { sizes[1].min(sizes[6]) } else { sizes[1] };
            flops = flops.max(4.0 * sizes[4] * TILE * (seen + TILE) * multiprocessors);
        }
        let work = Work {
            compute_us: flops / peak * 1e6,
            memory_us: bytes / hardware.bytes_per_second.get() * 1e6,
            bytes,
            features: Vec::new(),
        };
        if self.family.multiplies() {
            features.extend([log(work.compute_us).max(-4.0), log(work.memory_us).max(-4.0)]);
        }
        Ok(Work { features, ..work })
    }

    /// FLOPs that the mathematics needs, without what blocks add: what a rate is judged by.
    pub(crate) fn flops(&self) -> f64 {
        let sizes = &self.sizes;
        match self.family {
            Family::Gemm | Family::GroupedGemm => 2.0 * sizes[0] * sizes[1] * sizes[2],
            Family::ContextAttention => {
                let (length, window) = (sizes[1], sizes[6]);
                let outside = if window > 0.0 { (length - window).max(0.0) } else { 0.0 };
                let pairs = (length * length - outside * outside) / 2.0;
                4.0 * sizes[0] * sizes[2] * sizes[4] * pairs
            }
            Family::GenerationAttention | Family::PagedAttention => {
                let seen = if sizes[6] > 0.0 { sizes[1].min(sizes[6]) } else { sizes[1] };
                4.0 * sizes[0] * sizes[2] * sizes[4] * seen
            }
            Family::MaskedAttention => 4.0 * sizes[0] * sizes[3] * sizes[5] * sizes[1] * sizes[2],
            _ => 0.0,
        }
    }
}
