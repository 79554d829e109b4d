//! The roofline time of many operations, and what it is bound by.

use types::{Cost, DType, Seconds};

use crate::affine::AffineCost;
use crate::message::Message;
use crate::{Bound, Roofline};

/// Roofline time, and its compute-bound, memory-bound and communication parts; the rest is launch-bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// All of it.
    pub total: Seconds,
    /// Time of compute-bound operations.
    pub compute_bound: Seconds,
    /// Time of memory-bound operations.
    pub memory_bound: Seconds,
    /// Time in which devices wait for what others send.
    pub communication: Seconds,
}

/// A time that grows by the same amount with each step.
#[derive(Clone, Copy, Debug)]
struct Line {
    first: f64,
    slope: f64,
    bound: Bound,
}

impl Times {
    /// Of one operation.
    pub(crate) fn of(cost: &Cost, dtype: DType, roofline: &Roofline<'_>) -> Self {
        // Whoever summarises makes the roofline for every matrix type of the prediction, so a time is always there.
        let time = roofline.time(cost, dtype);
        debug_assert!(time.is_some(), "the roofline was not made for {dtype}");
        time.map_or_else(Self::default, |time| Self::bound_by(time.bound(), time.total()))
    }

    /// Of `steps` decode steps of one operation.
    ///
    /// Matrix, vector and memory time are each a straight line over the steps. Between two of their crossings one of
    /// them is the largest, and the sum over a straight line is its mean times the number of steps; so the sum takes as
    /// long for a million steps as for ten.
    pub(crate) fn of_steps(cost: &AffineCost, steps: u64, dtype: DType, roofline: &Roofline<'_>) -> Self {
        if cost.is_constant() {
            return Self::of(&cost.first, dtype, roofline).times(steps as f64);
        }
        let growing = steps.min(cost.grows.saturating_add(1));
        let rest = Self::of(&cost.at(cost.grows), dtype, roofline).times((steps - growing) as f64);
        let launch = roofline.launch().unwrap_or_default();
        let Some((first, slope)) = roofline.time_parts(&cost.first, dtype).zip(roofline.time_parts(&cost.slope, dtype))
        else {
            debug_assert!(false, "the roofline was not made for {dtype}");
            return Self::default();
        };
        let line = |index: usize, bound| Line { first: first[index].get(), slope: slope[index].get(), bound };
        let lines = [line(0, Bound::Compute), line(1, Bound::Compute), line(2, Bound::Memory)];
        let floor = Line { first: launch.get(), slope: 0.0, bound: Bound::Launch };
        let mut sum = Self::default();
        for (from, to) in segments(&[lines[0], lines[1], lines[2], floor], growing) {
            let middle = (from + to - 1) as f64 / 2.0;
            // The first of equals: as for a single operation, memory wins over compute and work over launches.
            let work = larger(lines[2], larger(lines[0], lines[1], middle), middle);
            let bound = larger(work, floor, middle).bound;
            let count = (to - from) as f64;
            sum += Self::bound_by(bound, Seconds::new(count * (work.at(middle) + launch.get())));
        }
        sum += rest;
        sum
    }

    fn bound_by(bound: Bound, total: Seconds) -> Self {
        match bound {
            Bound::Compute => Self { total, compute_bound: total, ..Self::default() },
            Bound::Memory => Self { total, memory_bound: total, ..Self::default() },
            Bound::Communication => Self { total, communication: total, ..Self::default() },
            Bound::Launch => Self { total, ..Self::default() },
        }
    }

    /// Of waiting for `messages`; a roofline for them was made with [`Roofline::linked`].
    pub(crate) fn waiting(messages: &[Message], roofline: &Roofline<'_>) -> Self {
        match roofline.hardware().interconnect_bytes_per_second {
            Some(link) if !messages.is_empty() => {
                Self::bound_by(Bound::Communication, messages.iter().map(|message| message.time(link)).sum())
            }
            _ => Self::default(),
        }
    }

    /// That many times as much.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self {
            total: self.total * factor,
            compute_bound: self.compute_bound * factor,
            memory_bound: self.memory_bound * factor,
            communication: self.communication * factor,
        }
    }

    /// What most of the time is bound by.
    pub fn bound(&self) -> Bound {
        let known = [
            (self.memory_bound, Bound::Memory),
            (self.compute_bound, Bound::Compute),
            (self.communication, Bound::Communication),
        ];
        let (most, bound) = known.into_iter().reduce(|a, b| if b.0 > a.0 { b } else { a }).unwrap_or_default();
        let launch = self.total.get() - known.iter().map(|(time, _)| time.get()).sum::<f64>();
        // What rounding leaves over is no launch.
        if launch > most.get() && launch > 1e-9 * self.total.get() { Bound::Launch } else { bound }
    }
}

impl Line {
    fn at(&self, step: f64) -> f64 {
        self.first + self.slope * step
    }
}

/// The line that lies higher at `step`; the first of equals.
fn larger(one: Line, other: Line, step: f64) -> Line {
    if other.at(step) > one.at(step) { other } else { one }
}

/// Cuts steps `0..count` where two lines cross, so that inside each piece the highest line is the same throughout.
fn segments(lines: &[Line], count: u64) -> Vec<(u64, u64)> {
    let mut cuts = vec![0, count];
    for (index, one) in lines.iter().enumerate() {
        for other in &lines[index + 1..] {
            let crossing = (one.first - other.first) / (other.slope - one.slope);
            if crossing.is_finite() && crossing > 0.0 && crossing < count as f64 {
                // The step after the crossing begins a piece; the crossing itself may fall on a step.
                cuts.extend([crossing.ceil() as u64, crossing.floor() as u64 + 1]);
            }
        }
    }
    cuts.retain(|cut| *cut <= count);
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

impl std::ops::AddAssign for Times {
    fn add_assign(&mut self, other: Self) {
        self.total += other.total;
        self.compute_bound += other.compute_bound;
        self.memory_bound += other.memory_bound;
        self.communication += other.communication;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::{Bytes, Flops, Traffic};

    use super::*;
    use crate::hardware::Catalogue;

    fn cost(matrix: u64, vector: u64, bytes: u64) -> Cost {
        Cost {
            flops_matrix: Flops::new(matrix.into()),
            flops_vector: Flops::new(vector.into()),
            bytes: Traffic { kv_read: Bytes::new(bytes), ..Traffic::ZERO },
        }
    }

    proptest! {
        #[test]
        fn all_steps_at_once_take_as_long_as_one_by_one(
            matrix in 0u64..1 << 40, vector in 0u64..1 << 36, bytes in 0u64..1 << 32,
            more in (0u64..1 << 36, 0u64..1 << 32, 0u64..1 << 28),
            steps in 0u64..300, grows in 0u64..400, launch in 0u64..50,
        ) {
            let catalogue = Catalogue::built_in().unwrap();
            let launch = (launch > 0).then(|| Seconds::new(launch as f64 * 1e-6));
            let roofline = Roofline::new(catalogue.find("h200").unwrap(), [DType::Bf16], launch).unwrap();
            let line = AffineCost { first: cost(matrix, vector, bytes), slope: cost(more.0, more.1, more.2), grows };
            let together = Times::of_steps(&line, steps, DType::Bf16, &roofline);
            let mut apart = Times::default();
            for step in 0..steps {
                apart += Times::of(&line.at(step), DType::Bf16, &roofline);
            }
            let near = |a: Seconds, b: Seconds| (a.get() - b.get()).abs() <= 1e-9 * apart.total.get();
            prop_assert!(near(together.total, apart.total), "{:?} {:?}", together, apart);
            prop_assert!(near(together.compute_bound, apart.compute_bound), "{:?} {:?}", together, apart);
            prop_assert!(near(together.memory_bound, apart.memory_bound), "{:?} {:?}", together, apart);
        }
    }

    #[test]
    fn the_largest_part_is_what_bounds() {
        let times = |compute: f64, memory: f64, wait: f64, total: f64| Times {
            total: Seconds::new(total),
            compute_bound: Seconds::new(compute),
            memory_bound: Seconds::new(memory),
            communication: Seconds::new(wait),
        };
        assert_eq!(times(2.0, 1.0, 0.0, 3.0).bound(), Bound::Compute);
        assert_eq!(times(1.0, 1.0, 0.0, 2.0).bound(), Bound::Memory);
        assert_eq!(times(1.0, 1.0, 3.0, 5.0).bound(), Bound::Communication);
        assert_eq!(times(1.0, 1.0, 0.0, 9.0).bound(), Bound::Launch);
        assert_eq!(Times::default().bound(), Bound::Memory);
    }
}
