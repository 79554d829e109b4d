//! The antialiased cubic kernel that pages and position tables are resampled with.

/// First input and weights, summing to one, of output `row` when `inputs` points are resampled to `outputs`. The kernel
/// is widened by the ratio of sizes when shrinking; points beyond the edge are left out.
pub(crate) fn taps(row: usize, inputs: usize, outputs: usize) -> (usize, Vec<f64>) {
    let scale = inputs as f64 / outputs as f64;
    let spread = scale.max(1.0);
    let reach = 2.0 * spread;
    let centre = (row as f64 + 0.5) * scale;
    let first = (centre - reach + 0.5).max(0.0) as usize;
    let end = ((centre + reach + 0.5) as usize).min(inputs);
    let weights: Vec<f64> = (first..end).map(|from| kernel((from as f64 - centre + 0.5) / spread)).collect();
    let sum: f64 = weights.iter().sum();
    (first, weights.into_iter().map(|weight| weight / sum).collect())
}

/// Cubic convolution with a = -0.5.
fn kernel(distance: f64) -> f64 {
    const A: f64 = -0.5;
    let x = distance.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}
