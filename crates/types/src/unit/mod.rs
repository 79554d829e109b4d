//! Physical quantities that the compiler keeps apart: adding bytes to FLOPs does not build.
//!
//! Measured time is integer nanoseconds ([`Nanos`]); modelled time is [`Seconds`], because a prediction of a tenth of a
//! nanosecond is meaningful and a measurement of one is not.

mod amount;
mod count;
mod energy;
mod rate;
mod time;

pub use amount::{Bytes, Flops};
pub use count::Count;
pub use energy::Joules;
pub use rate::{BytesPerSecond, FlopsPerByte, FlopsPerSecond};
pub use time::{Nanos, Seconds};

/// Writes `value` with three significant digits and the decimal prefix that keeps it readable: `1.47 TFLOP`.
fn with_decimal_prefix(f: &mut std::fmt::Formatter<'_>, value: f64, unit: &str) -> std::fmt::Result {
    const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let mut scaled = value;
    let mut step = 0;
    // 999.5 already prints as "1000" with three digits, so it belongs to the next prefix.
    while scaled.abs() >= 999.5 && step + 1 < PREFIXES.len() {
        scaled /= 1000.0;
        step += 1;
    }
    let decimals = match scaled.abs() {
        _ if step == 0 && scaled.fract() == 0.0 => 0,
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    write!(f, "{scaled:.decimals$} {}{unit}", PREFIXES[step])
}
