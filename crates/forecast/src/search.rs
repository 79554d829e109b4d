//! The smallest value of a function of a few numbers, without derivatives.

/// Starts at `start` with steps of `step` and walks along one number at a time: what helps is kept and grows, what does not
/// shrinks. `None` refuses a point.
pub(crate) fn descend(start: &[f64], step: f64, rounds: usize, cost: impl Fn(&[f64]) -> Option<f64>) -> Vec<f64> {
    let mut best = start.to_vec();
    let Some(mut lowest) = cost(&best) else { return best };
    let mut steps = vec![step; best.len()];
    for _ in 0..rounds {
        for index in 0..best.len() {
            let mut helped = false;
            for sign in [1.0, -1.0] {
                let mut tried = best.clone();
                tried[index] += sign * steps[index];
                if let Some(value) = cost(&tried).filter(|value| *value < lowest - 1e-6) {
                    (best, lowest, helped) = (tried, value, true);
                    break;
                }
            }
            steps[index] *= if helped { 1.3 } else { 0.5 };
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottom_of_a_bowl_is_found() {
        let found = descend(&[5.0, -3.0], 1.0, 14, |x| Some((x[0] - 1.0).powi(2) + 4.0 * (x[1] - 2.0).powi(2)));
        assert!((found[0] - 1.0).abs() < 0.02 && (found[1] - 2.0).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn what_is_refused_is_never_the_answer() {
        let found = descend(&[2.0], 1.0, 14, |x| (x[0] >= 1.0).then_some(x[0]));
        assert!(found[0] >= 1.0, "{found:?}");
    }
}
