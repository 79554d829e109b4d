//! Many tests at once.

/// P-values corrected for their number, in their order (Holm, 1979).
///
/// With `m` tests the smallest is multiplied by `m`, the next by `m - 1` and so on, and none may be below one before it.
/// The chance of even one corrected value at or below `a` where nothing changed is then at most `a`, whichever way the
/// tests depend on each other.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut floor: f64 = 0.0;
    for (place, index) in order.into_iter().enumerate() {
        floor = floor.max((p_values[index] * (p_values.len() - place) as f64).min(1.0));
        adjusted[index] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_case_worked_by_hand() {
        // Sorted 0.01 0.02 0.03 0.04: times 4, 3, 2, 1 gives 0.04 0.06 0.06 0.04, and no value below an earlier one.
        let found = holm(&[0.03, 0.01, 0.04, 0.02]);
        for (found, expected) in found.iter().zip([0.06, 0.04, 0.06, 0.06]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.2]), [0.2]);
    }

    proptest! {
        #[test]
        fn correction_keeps_the_order_and_never_helps(values in proptest::collection::vec(0.0..=1.0f64, 0..20)) {
            let adjusted = holm(&values);
            for (one, before) in values.iter().enumerate() {
                prop_assert!(adjusted[one] >= *before && adjusted[one] <= 1.0);
                prop_assert!(adjusted[one] <= before * values.len() as f64 + 1e-12 || values.iter().any(|other| other < before));
                for (other, value) in values.iter().enumerate() {
                    prop_assert!(before > value || adjusted[one] <= adjusted[other]);
                }
            }
        }
    }
}
