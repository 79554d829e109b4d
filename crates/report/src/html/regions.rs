//! The first screen of a run that read counters of regions and nothing else.

use types::{Nanos, Region, RegionReport};

use super::answers::Answer;
use super::rows::{Part, Row, named, nanoseconds, stacked, with_key};
use super::summary::{FirstScreen, Number};
use crate::render::text::{code, prose};
use crate::words::number::{count, grouped, known, percent, time_share};

/// Regions named in an answer.
const NAMED: usize = 3;

/// Regions drawn.
const ROWS: usize = 40;

/// Where every number is taken from.
const SOURCE: &[&str] = &["regions"];

/// What the page is called.
pub(super) fn title(report: &RegionReport) -> String {
    format!("Regions of {} on {}", report.target, report.device.as_deref().unwrap_or("an unnamed device"))
}

/// The first screen.
pub(super) fn first_screen(report: &RegionReport) -> FirstScreen {
    let whole = report.totals.as_ref();
    let time = whole.and_then(|totals| totals.total_ns_inclusive);
    let found = count(report.regions.len() as u64, "region");
    let headline = match time {
        Some(time) => format!("**{found}, {time} on the device.**"),
        None => format!("**{found}.** Their total time is unknown."),
    };
    let number = |name: &'static str, value: Option<String>, origin: &'static str| {
        Some(Number::new(name, value?, origin, SOURCE))
    };
    let kernels = whole.and_then(|totals| totals.kernels_inclusive);
    let outside = report.outside.and_then(|outside| outside.time_share);
    FirstScreen {
        headline,
        source: SOURCE,
        numbers: [
            number("regions", Some(grouped(report.regions.len() as u64)), "counted"),
            number("time on the device", time.map(|time| time.to_string()), "measured, replayed"),
            number("kernels in regions", kernels.map(grouped), "counted"),
            number("kernel time outside", outside.map(|share| percent(Some(share))), "measured, replayed"),
        ]
        .into_iter()
        .flatten()
        .collect(),
        answers: vec![
            Answer { question: "Where does the time go?", text: time_of(report), more: SOURCE },
            Answer {
                question: "How far is that from the hardware?",
                text: hardware(report),
                more: &["roofline", "regions-roofline", "regions"],
            },
            Answer { question: "What is outside?", text: outside_of(report), more: SOURCE },
        ],
    }
}

/// Time of each region: its own, and that of the regions in it.
pub(super) fn chart(report: &RegionReport) -> Option<String> {
    let row = |region: &Region| {
        let totals = region.aggregate.as_ref()?;
        let all = totals.total_ns_inclusive?;
        let own = totals.total_ns_exclusive.unwrap_or(all);
        let parts = [Part::new("exclusive", "c-0", own), Part::new("regions inside", "k-rest", all - own)];
        Some(Row { name: region.path.clone(), bars: stacked(&parts, Nanos::ZERO, all), figure: all.to_string() })
    };
    let drawn: Vec<Row> = report.regions.iter().filter_map(row).take(ROWS).collect();
    let key = named([("c-0", "exclusive"), ("k-rest", "regions inside")]);
    with_key("time of each region", &drawn, ("time on the device, all instances", nanoseconds), &key)
}

/// The region with most time of its own.
pub(super) fn seen(report: &RegionReport) -> Option<String> {
    let (region, time, how) = longest(report).into_iter().next()?;
    Some(format!("{} takes most time: {time}, {how}.", code(&region.path)))
}

/// A region's time without the regions in it, or with them where that is all there is.
fn own_time(region: &Region) -> Option<(Nanos, &'static str)> {
    let totals = region.aggregate.as_ref()?;
    let own = totals.total_ns_exclusive.map(|time| (time, "exclusive"));
    own.or_else(|| Some((totals.total_ns_inclusive?, "inclusive")))
}

/// The regions with a time, the longest first.
fn longest(report: &RegionReport) -> Vec<(&Region, Nanos, &'static str)> {
    let timed = |region| own_time(region).map(|(time, how)| (region, time, how));
    let mut regions: Vec<_> = report.regions.iter().filter_map(timed).collect();
    regions.sort_by_key(|(_, time, _)| std::cmp::Reverse(*time));
    regions
}

fn time_of(report: &RegionReport) -> String {
    let whole = report.totals.as_ref().and_then(|totals| totals.total_ns_inclusive).filter(|time| time.get() > 0);
    let named: Vec<String> = longest(report)
        .into_iter()
        .take(NAMED)
        .map(|(region, time, how)| {
            let share = whole.map(|whole| format!(", {} of the time in regions", percent(time_share(time, whole))));
            format!("{} {time} {how}{}", code(&region.path), share.unwrap_or_default())
        })
        .collect();
    if named.is_empty() {
        "Unknown: no region has a total time over its processes and devices.".to_owned()
    } else {
        format!("{}.", named.join("; "))
    }
}

fn hardware(report: &RegionReport) -> String {
    let reached = longest(report).into_iter().find_map(|(region, ..)| Some((region, region.roofline.as_ref()?)));
    let Some((region, counted)) = reached else {
        return "Unknown: device memory traffic was not among the counters.".to_owned();
    };
    let rates = [
        (counted.bandwidth_share, "of peak bandwidth"),
        (counted.compute_share, "of peak FLOP/s (counted FLOPs only)"),
    ];
    let rates: Vec<String> =
        rates.into_iter().filter_map(|(share, of)| Some(format!("{} {of}", percent(Some(share?))))).collect();
    if rates.is_empty() {
        format!(
            "{} moves {} to and from device memory; the peak rates of {} are unknown.",
            code(&region.path),
            counted.dram_bytes,
            prose(report.device.as_deref().unwrap_or("its device"))
        )
    } else {
        format!("{} reaches {}.", code(&region.path), rates.join(" and "))
    }
}

fn outside_of(report: &RegionReport) -> String {
    match &report.outside {
        None => "Unknown: only regions were profiled; `--survey` counts the rest.".to_owned(),
        Some(outside) if outside.kernels == 0 => "Nothing: every profiled kernel lies in a region.".to_owned(),
        Some(outside) => {
            format!(
                "{}, {} of all kernel time.",
                count(outside.kernels, "kernel"),
                known(outside.time_share.map(|share| percent(Some(share))))
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::regions::sample;

    fn texts(report: &RegionReport) -> Vec<String> {
        first_screen(report).answers.into_iter().map(|answer| answer.text).collect()
    }

    #[test]
    fn times_are_of_the_regions_themselves_and_never_more_than_the_whole() {
        let report = sample::report();
        let screen = first_screen(&report);
        let whole = report.totals.as_ref().unwrap().total_ns_inclusive.unwrap();
        assert!(screen.headline.ends_with(&format!("**2 regions, {whole} on the device.**")), "{}", screen.headline);
        let own: i64 = longest(&report).iter().map(|(_, time, _)| time.get()).sum();
        assert!(own <= whole.get(), "{own} of {whole}");
        assert!(texts(&report)[0].contains("`A` ") && texts(&report)[0].contains("exclusive"), "{:?}", texts(&report));
    }

    #[test]
    fn a_bar_holds_the_time_of_a_region_and_of_those_inside() {
        let svg = chart(&sample::report()).unwrap();
        assert!(svg.contains("<title>regions inside ") && svg.contains(">A::A1<"), "{svg}");
        assert!(seen(&sample::report()).unwrap().starts_with("`A` takes most time: "));
    }

    #[test]
    fn what_was_not_counted_is_unknown() {
        let mut report = sample::report();
        report.outside = None;
        report.totals = None;
        for region in &mut report.regions {
            (region.roofline, region.aggregate) = (None, None);
        }
        let texts = texts(&report);
        assert!(texts.iter().all(|text| text.starts_with("Unknown: ")), "{texts:?}");
        assert!(first_screen(&report).headline.ends_with("is unknown."));
    }
}
