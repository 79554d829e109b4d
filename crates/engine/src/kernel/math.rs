//! Exponential and error function as short polynomials, which compile to vector code; the library's do not.

/// `e^x` within two units in the last place; zero below -86.9 and infinite above 88.7, where the true value is not normal.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2. Adding one and a half times 2^23 rounds to a whole number, which then stands
    // in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first with so few bits that n times it is exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(-86.9, 88.7);
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, clamped));
    // Cephes' polynomial for (e^r - 1 - r) / r^2.
    let p = 1.987_569_1e-4f32;
    let p = p.mul_add(r, 1.398_199_9e-3);
    let p = p.mul_add(r, 8.333_452e-3);
    let p = p.mul_add(r, 4.166_579_6e-2);
    let p = p.mul_add(r, 1.666_666_5e-1);
    let p = p.mul_add(r, 5e-1);
    let value = (p * r).mul_add(r, r) + 1.0;
    // 2^n in two factors, as n may be 128, which one cannot hold.
    let bits = shifted.to_bits();
    let half = f32::from_bits((bits << 23).wrapping_add(126 << 23));
    let value = value * half * 2.0;
    if x < -86.9 { 0.0 } else { value }
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The error function within 1e-6: a quotient of polynomials in `x^2`, as in Eigen and XLA; one from 4 on.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let p = -2.726_142_3e-10f32;
    let p = p.mul_add(square, 2.770_681_4e-8);
    let p = p.mul_add(square, -2.101_024e-6);
    let p = p.mul_add(square, -5.692_506_4e-5);
    let p = p.mul_add(square, -7.349_906_3e-4);
    let p = p.mul_add(square, -2.954_6e-3);
    let p = p.mul_add(square, -1.609_603_3e-2);
    let q = -1.456_607_2e-5f32;
    let q = q.mul_add(square, -2.133_740_6e-4);
    let q = q.mul_add(square, -1.682_827e-3);
    let q = q.mul_add(square, -7.373_329e-3);
    let q = q.mul_add(square, -1.426_473_9e-2);
    x * p / q
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_the_librarys_within_two_units_in_the_last_place() {
        let mut worst = 0f64;
        for step in -86_900..88_700 {
            let x = step as f32 / 1000.0;
            let wanted = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) - wanted).abs() / wanted);
        }
        assert!(worst < 2.4e-7, "off by {worst:e}");
        assert_eq!((exp(0.0), exp(-100.0), exp(f32::NEG_INFINITY)), (1.0, 0.0, 0.0));
    }

    #[test]
    fn the_error_function_matches_published_values() {
        // Abramowitz and Stegun, table 7.1.
        for (x, wanted) in [(0.0, 0.0), (0.1, 0.112_462_916), (0.5, 0.520_499_9), (1.0, 0.842_700_8)] {
            assert!((erf(x) - wanted).abs() < 1e-6 && (erf(-x) + wanted).abs() < 1e-6, "erf({x}) = {}", erf(x));
        }
        for (x, wanted) in [(1.5, 0.966_105_15), (2.0, 0.995_322_3), (3.0, 0.999_977_9), (9.0, 1.0)] {
            assert!((erf(x) - wanted).abs() < 1e-6, "erf({x}) = {}", erf(x));
        }
        assert!(erf(f32::NAN).is_nan());
    }
}
