//! Rates: what a device does per second, and how much work a byte brings with it.

use std::fmt;
use std::ops::{Div, Mul};

use serde::{Deserialize, Serialize};

use crate::JsonSchema;

use super::{Bytes, Flops, Seconds, with_decimal_prefix};

/// Floating-point operations per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FlopsPerSecond(f64);

/// Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct BytesPerSecond(f64);

/// Arithmetic intensity: operations done for each byte moved.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FlopsPerByte(f64);

macro_rules! rate {
    ($name:ident, $unit:literal) => {
        impl $name {
            /// That rate.
            pub const fn new(rate: f64) -> Self {
                Self(rate)
            }

            /// The number.
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }

        impl Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                with_decimal_prefix(f, self.0, $unit)
            }
        }
    };
}

rate!(FlopsPerSecond, "FLOP/s");
rate!(BytesPerSecond, "B/s");
rate!(FlopsPerByte, "FLOP/B");

impl Div<FlopsPerSecond> for Flops {
    type Output = Seconds;
    fn div(self, rate: FlopsPerSecond) -> Seconds {
        Seconds::new(self.as_f64() / rate.0)
    }
}

impl Div<BytesPerSecond> for Bytes {
    type Output = Seconds;
    fn div(self, rate: BytesPerSecond) -> Seconds {
        Seconds::new(self.as_f64() / rate.0)
    }
}

impl Div<Seconds> for Flops {
    type Output = FlopsPerSecond;
    fn div(self, time: Seconds) -> FlopsPerSecond {
        FlopsPerSecond(self.as_f64() / time.get())
    }
}

impl Div<Seconds> for Bytes {
    type Output = BytesPerSecond;
    fn div(self, time: Seconds) -> BytesPerSecond {
        BytesPerSecond(self.as_f64() / time.get())
    }
}

impl Div<Bytes> for Flops {
    type Output = FlopsPerByte;
    fn div(self, bytes: Bytes) -> FlopsPerByte {
        FlopsPerByte(self.as_f64() / bytes.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_over_rate_is_time_and_work_over_time_is_rate() {
        // 1.148 GB of active weights at 4.8 TB/s: the memory floor of one DeepSeek-OCR token, 0.239 ms.
        let floor = Bytes::new(1_148_000_000) / BytesPerSecond::new(4.8e12);
        assert!((floor.as_millis() - 0.239_166).abs() < 1e-5);
        let rate = Flops::new(1_000) / Seconds::new(0.5);
        assert_eq!(rate, FlopsPerSecond::new(2_000.0));
    }

    #[test]
    fn rates_print_with_a_prefix() {
        assert_eq!(BytesPerSecond::new(4.8e12).to_string(), "4.80 TB/s");
        assert_eq!(FlopsPerSecond::new(989.5e12).to_string(), "990 TFLOP/s");
    }
}
