//! What this machine's processor reaches: GEMMs with the kernels that the engine runs on, and a copy that no cache
//! holds. The rates stand in the place of a vendor's peaks, which no vendor prints for a processor.
//!
//! Measures and keeps; what the rates are good for is decided elsewhere.

mod copy;
mod gemm;
mod points;
mod store;

pub use points::points;
pub use store::Store;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use half::{bf16, f16};
use types::{
    Bytes, BytesPerSecond, CalibratedRate, Calibration, ComputeUnit, DType, Flops, FlopsPerSecond, Hardware, Nanos,
    NumberSource, Peak, SchemaTag, Source, UserError,
};

use crate::disturbance::{SchedulerTimes, UNDISTURBED};
use crate::environment;
use crate::error::not_calibrated;

/// How much to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationSettings {
    /// Threads to use.
    pub threads: usize,
    /// Sides of the square matrices to try, smallest first; the first that takes long enough is measured.
    pub sides: Vec<usize>,
    /// How long one GEMM must take for its time to be worth something.
    pub long_enough: Duration,
    /// Rounds of each measurement at least.
    pub rounds_least: usize,
    /// Rounds of each measurement at most.
    pub rounds_most: usize,
    /// Time after which no further round starts, once there are enough.
    pub budget: Duration,
    /// Bytes to copy; chosen by the caches and the memory of this machine when absent.
    pub copy_bytes: Option<usize>,
}

impl Default for CalibrationSettings {
    /// About a second in total: three element types and the copy.
    fn default() -> Self {
        Self {
            threads: threads(),
            sides: vec![128, 256, 512, 1024, 2048, 4096],
            // A GEMM of 10 ms is five orders above the clock's resolution and long against the start of threads.
            long_enough: Duration::from_millis(10),
            rounds_least: 5,
            rounds_most: 15,
            budget: Duration::from_millis(100),
            copy_bytes: None,
        }
    }
}

/// A calibration and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct AvailableCalibration {
    /// The rates.
    pub calibration: Calibration,
    /// Whether they were measured just now.
    pub measured_now: bool,
    /// What the user should know: a stored file that could not be read, rates that could not be kept or are unreliable.
    pub note: Option<String>,
}

/// Threads that work is spread over: `RAYON_NUM_THREADS`, as rayon reads it, or what this process may use.
pub fn threads() -> usize {
    let wanted = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.trim().parse().ok());
    let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    wanted.filter(|count| *count > 0).unwrap_or_else(available)
}

/// The processor's name, under which its rates are kept.
pub fn processor_name() -> String {
    environment::processor().model.unwrap_or_else(|| format!("unknown {} CPU", std::env::consts::ARCH))
}

/// Measures this machine; `progress` is told what is being measured.
pub fn measure(settings: &CalibrationSettings, progress: &mut dyn FnMut(&str)) -> Result<Calibration, UserError> {
    let threads = settings.threads.max(1);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| not_calibrated("threads", &error.to_string()))?;
    let mut matrix = Vec::new();
    let mut thread_share = None;
    for (dtype, measure) in PRODUCTS {
        progress(&format!("measuring: {dtype} GEMM, {threads} threads"));
        let (rate, share) = pool.install(|| measure(dtype, settings))?;
        matrix.push(rate);
        thread_share = thread_share.or(share);
    }
    let memory = environment::memory();
    let memory_bytes =
        memory.total_bytes.ok_or_else(|| not_calibrated("memory", "the system does not report its size"))?;
    let size = copy::Size::choose(settings.copy_bytes, &memory);
    progress(&format!("measuring: copy of {} MiB, {threads} threads", size.bytes >> 20));
    let copy_samples_ns = pool.install(|| copy::measure(&size, settings))?;
    let moved = Bytes::new(size.bytes as u64) * 2;
    Ok(Calibration {
        schema: SchemaTag::new(),
        cpu_model: processor_name(),
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        measured_at: environment::now(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        matrix,
        thread_share,
        bytes_per_second: BytesPerSecond::new((moved / best(&copy_samples_ns)?.as_seconds()).get().round()),
        copy_method: size.method(),
        copy_samples_ns,
        memory_bytes,
    })
}

/// The kept rates for this processor and thread count, or new ones, which are kept.
pub fn ensure(
    store: &Store,
    settings: &CalibrationSettings,
    progress: &mut dyn FnMut(&str),
) -> Result<AvailableCalibration, UserError> {
    let (kept, unreadable) = match store.read(&processor_name(), settings.threads) {
        Ok(Some(calibration)) if warning(&calibration).is_none() => {
            return Ok(AvailableCalibration { calibration, measured_now: false, note: None });
        }
        Ok(kept) => (kept, None),
        Err(error) => (None, Some(format!("{error}; measured again"))),
    };
    // Rates that were measured on a busy machine are measured again, and the better ones kept: what disturbs a
    // measurement makes it slower.
    let attempts = if kept.is_some() { 1 } else { ATTEMPTS };
    let mut calibration = kept;
    for _ in 0..attempts {
        let again = measure(settings, progress)?;
        let is_steady = warning(&again).is_none();
        calibration = Some(match calibration {
            Some(before) if !is_steady && rate(&before) > rate(&again) => before,
            _ => again,
        });
        if is_steady {
            break;
        }
    }
    let calibration = calibration.ok_or_else(|| not_calibrated("rates", "nothing was measured"))?;
    let not_kept = store.write(&calibration).err().map(|error| error.to_string());
    let unreliable = warning(&calibration).map(|reason| format!("the measured rates are unreliable: {reason}"));
    let notes: Vec<String> = [unreadable, not_kept, unreliable].into_iter().flatten().collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(AvailableCalibration { calibration, measured_now: true, note })
}

/// How often rates are measured until they are steady.
const ATTEMPTS: usize = 3;

/// The rate by which two calibrations are told apart: that of the first element type.
fn rate(calibration: &Calibration) -> f64 {
    calibration.matrix.first().map_or(0.0, |rate| rate.flops.get())
}

/// How far the middle round may lie above the best one. An undisturbed machine stays within a tenth.
const STEADY: f64 = 1.25;

/// Why the rates are to be doubted, when they are: threads that had to wait and rounds that differ mean that something
/// else was running, and then the best round is not the best the machine can do either.
pub fn warning(calibration: &Calibration) -> Option<String> {
    let matrix = calibration.matrix.iter().map(|rate| (rate.dtype.to_string(), &rate.samples_ns));
    let copy = ("copy".to_owned(), &calibration.copy_samples_ns);
    let unsteady = matrix.chain([copy]).filter_map(|(name, samples)| {
        let mut samples = samples.clone();
        samples.sort();
        let (best, middle) = (samples.first()?, samples.get(samples.len() / 2)?);
        let spread = middle.as_millis() / best.as_millis();
        (spread > STEADY).then(|| format!("{name} {spread:.1}x"))
    });
    let unsteady: Vec<String> = unsteady.collect();
    let waited = calibration.thread_share.filter(|share| *share < UNDISTURBED);
    let waited = waited.map(|share| format!("its threads ran for only {:.0}% of their runnable time", share * 100.0));
    let unsteady =
        (!unsteady.is_empty()).then(|| format!("median round relative to the best: {}", unsteady.join(", ")));
    let reasons: Vec<String> = [waited, unsteady].into_iter().flatten().collect();
    (!reasons.is_empty()).then(|| format!("the machine was busy ({})", reasons.join("; ")))
}

/// The processor as a device with peaks, as the catalogue describes others.
pub fn hardware(calibration: &Calibration) -> Hardware {
    const SOURCE: &str = "calibration";
    let number = |note: &str| NumberSource { source: SOURCE.to_owned(), note: Some(note.to_owned()) };
    let peaks = calibration
        .matrix
        .iter()
        .map(|rate| Peak {
            dtype: rate.dtype,
            unit: ComputeUnit::Matrix,
            accumulate: Some(DType::Fp32),
            flops: rate.flops,
            source: SOURCE.to_owned(),
            note: Some(format!("measured: {}, best of {}", rate.method, rate.samples_ns.len())),
        })
        .collect();
    let source = Source {
        title: "llm-perf doctor --calibrate".to_owned(),
        publisher: "measured on this machine".to_owned(),
        date: Some(calibration.measured_at.clone()),
        url: None,
        note: Some(format!("{} threads, llm-perf {}", calibration.threads, calibration.tool_version)),
    };
    Hardware {
        id: "cpu".to_owned(),
        name: calibration.cpu_model.clone(),
        vendor: vendor(&calibration.cpu_model).to_owned(),
        nvml_names: Vec::new(),
        architecture: std::env::consts::ARCH.to_owned(),
        compute_capability: None,
        memory_bytes: calibration.memory_bytes,
        bytes_per_second: calibration.bytes_per_second,
        l2_bytes: None,
        sm_count: calibration.threads,
        boost_clock_hz: None,
        power_watts: None,
        interconnect_bytes_per_second: None,
        peaks,
        number_sources: BTreeMap::from([
            ("memory_bytes".to_owned(), number("system memory")),
            ("bytes_per_second".to_owned(), number(&format!("measured: {}", calibration.copy_method))),
            ("sm_count".to_owned(), number("threads used for the measurement")),
        ]),
        sources: BTreeMap::from([(SOURCE.to_owned(), source)]),
    }
}

fn vendor(model: &str) -> &'static str {
    let known = ["Intel", "AMD", "Arm", "Ampere", "Apple"];
    known.into_iter().find(|name| model.contains(name)).unwrap_or("unknown")
}

/// One measured element type, and the share of the time its threads really ran.
type Measure = fn(DType, &CalibrationSettings) -> Result<(CalibratedRate, Option<f64>), UserError>;

/// The element types that networks are computed in.
const PRODUCTS: [(DType, Measure); 3] = [
    (DType::Fp32, measure_gemm::<gemm::SingleGemm>),
    (DType::Fp16, measure_gemm::<gemm::WidenedGemm<f16>>),
    (DType::Bf16, measure_gemm::<gemm::WidenedGemm<bf16>>),
];

/// Finds the side that takes long enough, then measures it.
fn measure_gemm<P: gemm::Gemm>(
    dtype: DType,
    settings: &CalibrationSettings,
) -> Result<(CalibratedRate, Option<f64>), UserError> {
    let wrong = |reason: &str| not_calibrated(&format!("{dtype} GEMM"), reason);
    let largest = settings.sides.last().copied().ok_or_else(|| wrong("no matrix size to try"))?;
    let mut found = false;
    for side in settings.sides.iter().copied() {
        let mut matrices = P::new(side);
        // The first run touches the memory and starts the threads.
        matrices.run(settings.threads);
        if !found && side != largest {
            let once = time(|| matrices.run(settings.threads)).min(time(|| matrices.run(settings.threads)));
            if once < settings.long_enough {
                // Twice the side is eight times the work, so the next side need not be tried before it is measured.
                found = once * 8 >= settings.long_enough;
                continue;
            }
        }
        let mut failure = None;
        let before = SchedulerTimes::of_this_process();
        let samples_ns = rounds(settings, || {
            matrices.poison();
            let spent = time(|| matrices.run(settings.threads));
            failure = failure.take().or_else(|| matrices.check().err());
            spent
        })?;
        let share = SchedulerTimes::of_this_process().share_since(before);
        if let Some(reason) = failure {
            return Err(wrong(&reason));
        }
        // Each of the side^2 results is `side` multiply-adds of two operations.
        let work = Flops::new(2 * (side as u128).pow(3));
        // To whole operations: what is behind the point is noise, and whole numbers survive a file unchanged.
        let flops = FlopsPerSecond::new((work / best(&samples_ns)?.as_seconds()).get().round());
        return Ok((CalibratedRate { dtype, flops, method: P::method(side), samples_ns }, share));
    }
    Err(wrong("no matrix size to try"))
}

/// Repeats a round and keeps every time.
fn rounds(settings: &CalibrationSettings, mut round: impl FnMut() -> Duration) -> Result<Vec<Nanos>, UserError> {
    let started = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < settings.rounds_least.max(1)
        || samples.len() < settings.rounds_most && started.elapsed() < settings.budget
    {
        let spent = Nanos::from_duration(round()).filter(|spent| *spent > Nanos::ZERO);
        samples.push(spent.ok_or_else(|| not_calibrated("timing", "a round took zero time; the clock is unreliable"))?);
    }
    Ok(samples)
}

/// The shortest time: everything that disturbs a measurement makes it longer.
fn best(samples: &[Nanos]) -> Result<Nanos, UserError> {
    samples.iter().copied().min().ok_or_else(|| not_calibrated("timing", "no round was run"))
}

fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small enough for a build without optimisation.
    fn small() -> CalibrationSettings {
        CalibrationSettings {
            threads: 2,
            sides: vec![16, 32],
            long_enough: Duration::ZERO,
            rounds_least: 2,
            rounds_most: 3,
            budget: Duration::ZERO,
            copy_bytes: Some(1 << 16),
        }
    }

    #[test]
    fn every_element_type_is_measured_and_every_round_kept() {
        let mut said = Vec::new();
        let calibration = measure(&small(), &mut |text| said.push(text.to_owned())).unwrap();
        let measured: Vec<DType> = calibration.matrix.iter().map(|rate| rate.dtype).collect();
        assert_eq!(measured, [DType::Fp32, DType::Fp16, DType::Bf16]);
        for rate in &calibration.matrix {
            assert_eq!(rate.samples_ns.len(), 2, "{}", rate.dtype);
            let best = rate.samples_ns.iter().min().unwrap().as_seconds().get();
            assert_eq!(rate.flops.get(), (f64::from(2 * 16 * 16 * 16) / best).round(), "{}", rate.dtype);
        }
        assert_eq!(calibration.copy_samples_ns.len(), 2);
        assert_eq!(calibration.threads, 2);
        assert_eq!(said.len(), 4, "each measurement is announced: {said:?}");
    }

    #[test]
    fn a_side_that_is_too_quick_gives_way_to_the_next() {
        let patient = CalibrationSettings { long_enough: Duration::from_secs(3600), ..small() };
        let rate = measure_gemm::<gemm::SingleGemm>(DType::Fp32, &patient).unwrap().0;
        assert!(rate.method.contains("32x32x32"), "{}", rate.method);
        let none = CalibrationSettings { sides: vec![], ..small() };
        assert!(measure_gemm::<gemm::SingleGemm>(DType::Fp32, &none).is_err());
    }

    #[test]
    fn what_is_kept_is_not_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let first = ensure(&store, &small(), &mut |_| {}).unwrap();
        assert!(first.measured_now);
        // As an undisturbed machine would have measured it.
        let mut steady = first.calibration;
        steady.thread_share = Some(1.0);
        steady.matrix.iter_mut().for_each(|rate| rate.samples_ns.truncate(1));
        steady.copy_samples_ns.truncate(1);
        store.write(&steady).unwrap();
        let second = ensure(&store, &small(), &mut |text| panic!("measured {text}")).unwrap();
        assert!(!second.measured_now);
        assert_eq!(second.calibration, steady);
        store.write(&Calibration { thread_share: Some(0.5), ..steady }).unwrap();
        assert!(ensure(&store, &small(), &mut |_| {}).unwrap().measured_now, "a busy machine is measured again");
        let other = CalibrationSettings { threads: 1, ..small() };
        assert!(ensure(&store, &other, &mut |_| {}).unwrap().measured_now, "other threads have other rates");
    }

    #[test]
    fn rates_that_cannot_be_kept_are_still_used_and_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        std::fs::write(&blocked, "").unwrap();
        let ensured = ensure(&Store::new(&blocked), &small(), &mut |_| {}).unwrap();
        assert!(ensured.measured_now);
        let note = ensured.note.unwrap();
        assert!(note.starts_with("cannot store measured rates in "), "{note}");
    }

    #[test]
    fn time_spent_waiting_for_a_processor_is_counted() {
        let before = SchedulerTimes::read("1000 50 7\n").unwrap();
        let after = SchedulerTimes::read("4000 1050 9\n").unwrap();
        // 3000 run and 1000 waited for.
        assert_eq!(after.share_since(before), Some(0.75));
        assert_eq!(before.share_since(before), None, "nothing ran");
        assert_eq!(before.share_since(after), None, "a thread ended in between");
        assert_eq!(SchedulerTimes::read(""), None);
    }

    #[test]
    fn rounds_that_differ_are_a_reason_to_doubt() {
        let mut calibration = measure(&small(), &mut |_| {}).unwrap();
        let samples = |times: &[i64]| times.iter().copied().map(Nanos::new).collect::<Vec<_>>();
        for rate in &mut calibration.matrix {
            rate.samples_ns = samples(&[100, 104, 250]);
        }
        calibration.copy_samples_ns = samples(&[120, 100, 110, 900, 110]);
        calibration.thread_share = None;
        assert_eq!(warning(&calibration), None, "one slow round is no reason");
        calibration.thread_share = Some(0.62);
        assert_eq!(
            warning(&calibration).unwrap(),
            "the machine was busy (its threads ran for only 62% of their runnable time)"
        );
        calibration.thread_share = Some(0.97);
        calibration.matrix[0].samples_ns = samples(&[300, 100, 250]);
        calibration.copy_samples_ns = samples(&[100, 150]);
        assert_eq!(
            warning(&calibration).unwrap(),
            "the machine was busy (median round relative to the best: fp32 2.5x, copy 1.5x)"
        );
    }

    #[test]
    fn a_processor_is_a_device_whose_every_number_has_a_source() {
        let calibration = measure(&small(), &mut |_| {}).unwrap();
        let hardware = hardware(&calibration);
        assert_eq!(hardware.id, "cpu");
        let rate = hardware.peak(DType::Fp32, ComputeUnit::Matrix).unwrap();
        assert_eq!(rate.flops, calibration.matrix[0].flops);
        assert_eq!(hardware.peak(DType::Fp32, ComputeUnit::Vector), None, "what was not measured is absent");
        assert_eq!(hardware.peak(DType::Bf16, ComputeUnit::Matrix).unwrap().accumulate, Some(DType::Fp32));
        assert!(hardware.peaks.iter().all(|peak| hardware.sources.contains_key(&peak.source)));
        assert!(hardware.number_sources.values().all(|number| hardware.sources.contains_key(&number.source)));
    }

    #[test]
    fn the_maker_is_named_only_when_the_model_names_it() {
        assert_eq!(vendor("Intel(R) Xeon(R) Processor"), "Intel");
        assert_eq!(vendor("AMD EPYC 9654 96-Core Processor"), "AMD");
        assert_eq!(vendor("unknown riscv64 processor"), "unknown");
    }
}
