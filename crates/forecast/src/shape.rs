//! Operations that are timed: their sizes, the work they do and the features their times are interpolated in.

use types::{DType, Hardware};

use crate::ForecastError;

/// A kind of operation whose time depends on a few sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `m x k` times `k x n`.
    Gemm,
    /// The same, its rows spread over experts.
    GroupedGemm,
    /// Attention of a prompt to itself, causal.
    ContextAttention,
    /// Attention of one new position to the cache.
    GenerationAttention,
    /// A kernel that reads and writes memory and does little else.
    Elementwise,
    /// A copy within the device.
    Copy,
    /// A copy from the host to the device.
    HostToDevice,
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
    /// Every family.
    pub const ALL: [Self; 7] = [
        Self::Gemm,
        Self::GroupedGemm,
        Self::ContextAttention,
        Self::GenerationAttention,
        Self::Elementwise,
        Self::Copy,
        Self::HostToDevice,
    ];

    /// The name in the column `op`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::GroupedGemm => "grouped_gemm",
            Self::ContextAttention => "context_attention",
            Self::GenerationAttention => "generation_attention",
            Self::Elementwise => "elementwise",
            Self::Copy => "copy",
            Self::HostToDevice => "h2d",
        }
    }

    /// Columns of its sizes.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Gemm => &["m", "n", "k"],
            Self::GroupedGemm => &["m", "n", "k", "experts"],
            Self::ContextAttention => &["batch", "length", "heads", "kv_heads", "head_dim", "kv_dtype", "window"],
            Self::GenerationAttention => &["batch", "kv_length", "heads", "kv_heads", "head_dim", "kv_dtype", "window"],
            Self::Elementwise | Self::Copy | Self::HostToDevice => &["bytes"],
        }
    }

    /// The family of that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// Whether its arithmetic runs on the matrix unit.
    const fn multiplies(self) -> bool {
        !matches!(self, Self::Elementwise | Self::Copy | Self::HostToDevice)
    }

    /// Whether its traffic is that of the device's own memory.
    pub(crate) const fn in_memory(self) -> bool {
        !matches!(self, Self::HostToDevice)
    }

    /// Column that is the same for points of one site: a model brings it, a request does not.
    pub(crate) const fn site(self) -> std::ops::Range<usize> {
        match self {
            Self::Gemm | Self::GroupedGemm => 1..3,
            Self::ContextAttention | Self::GenerationAttention => 2..5,
            Self::Elementwise | Self::Copy | Self::HostToDevice => 0..1,
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
        Self { family: Family::Elementwise, dtype, sizes: vec![bytes.max(1.0)] }
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
            let peak = hardware.matrix_peak(self.dtype).ok_or_else(|| ForecastError::NoPeak {
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
            Family::ContextAttention | Family::GenerationAttention => {
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
            Family::Elementwise | Family::Copy | Family::HostToDevice => (0.0, sizes[0], vec![log(sizes[0])]),
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
            Family::GenerationAttention => {
                let seen = if sizes[6] > 0.0 { sizes[1].min(sizes[6]) } else { sizes[1] };
                4.0 * sizes[0] * sizes[2] * sizes[4] * seen
            }
            Family::Elementwise | Family::Copy | Family::HostToDevice => 0.0,
        }
    }
}
