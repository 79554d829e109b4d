//! A fleet as a page: ranks in pictures, then the Markdown page of it.

use types::view::RankLane;
use types::{Fleet, FleetJob, FleetRank, Nanos, RunManifest, Trend};

use super::canvas;
use super::columns::{Event, Lane, Lanes};
use super::gather::{fewer, nested};
use super::lanes::MOST_EVENTS;
use super::masthead;
use super::names::Names;
use super::palette::{COMMUNICATION, COMPUTE, COPIES, Colour, IDLE, WAITS, parts};
use super::rows::{Bar, Row, Rows, nanoseconds, rows};
use super::shell::{self, Section};
use crate::pages::fleet;
use crate::render::Page;
use crate::render::text::{code, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{decimal, percent, time_share};

/// Room for figures beside ranks.
const ROOM: f64 = 250.0;
/// Ranks drawn.
const RANKS: usize = 128;

/// The page, with the collectives of the first job's ranks on one clock; the manifest is of the run that it is in.
pub fn fleet_page(found: &Fleet, lanes: &[RankLane], manifest: Option<&RunManifest>) -> String {
    let mut sections = Vec::new();
    let mut about = masthead::of_manifest(manifest);
    about.push(("run", manifest.map(|manifest| code(&manifest.run_id))));
    let mut top = masthead::about(about);
    let lanes = found.jobs.first().and_then(|job| rank_lanes(lanes, job));
    let data: Vec<_> = lanes.iter().map(|lanes| ("ranks", lanes.as_str())).collect();
    for job in &found.jobs {
        let mut said = Page::new("");
        said.callout(READ_FIRST, fleet::caveats(job));
        said.paragraph(&format!("**{}**: {}", prose(&job.job), fleet::headline(job)));
        said.list(fleet::findings(job));
        top += &format!("<div class=\"verdict\">{}</div>\n", said.html("v"));
        if job.ranks.iter().any(|rank| rank.span_ns > Nanos::ZERO) {
            let title = format!("Device time of {}", job.job);
            let drawn = on_scale(job, "device time of each rank", &device_time(job), &parts());
            sections.push(Section::new("device-time", &title, shell::figure("", &drawn)));
        }
        if job.ranks.iter().any(|rank| rank.waited_ns > Some(Nanos::ZERO)) {
            let title = format!("Waiting in {}", job.job);
            let key =
                [(WAITS, "the rank waits in collectives for the last rank"), ("c-lost", "the others wait for it")];
            let key = key.map(|(class, name)| (class.to_owned(), name.to_owned()));
            let drawn = on_scale(job, "waiting for the last rank", &waiting(job), &key);
            sections.push(Section::new("waiting", &title, shell::figure("", &drawn)));
        }
        // A picture of the first job alone: its place in the address is one.
        if let (true, Some(_)) = (std::ptr::eq(job, &found.jobs[0]), &lanes) {
            let title = format!("Collectives of {} on one clock", job.job);
            sections.push(canvas("ranks", &title, "ranks", "of each rank: waiting and transfer"));
        }
    }
    let changed: Vec<_> = found.trends.iter().flat_map(fleet::changes).collect();
    if !found.trends.is_empty() {
        let mut said = Page::new("");
        if changed.is_empty() {
            said.paragraph("No quantity changed significantly.")
        } else {
            said.list(changed)
        }
        top += &format!("<div class=\"verdict\">{}</div>\n", said.html("t"));
        let body = found.trends.iter().map(|trend| shell::figure("", &series(trend))).collect();
        sections.push(Section::new("trends", "Runs over time", body));
    }
    let body = fleet::page(found).html("fleet");
    sections.push(Section::new("fleet", "Figures", body));
    shell::document("Fleet", &top, &sections, &data)
}

/// Columns of a lane for each rank. What is neither waiting nor a collective is work of the rank itself, or idle time.
fn rank_lanes(ranks: &[RankLane], job: &FleetJob) -> Option<String> {
    let mut names = Names::default();
    let mut lane = |of: &RankLane| {
        let mut events = Vec::new();
        for (spans, colour) in [(&of.waits, Colour::Kind("waits")), (&of.transfers, Colour::Family("communication"))] {
            events.extend(spans.iter().map(|span| Event {
                start: span.start.get(),
                length: span.length.get(),
                name: names.text(&span.name, &colour),
                count: 1,
                busy: span.length.get(),
                ..Event::default()
            }));
        }
        Lane {
            name: format!("rank {}", fleet::name(of.rank)),
            kind: "ranks",
            events: nested(events),
            ..Lane::default()
        }
    };
    let mut lanes: Vec<Lane> = ranks.iter().take(RANKS).map(&mut lane).collect();
    let first = lanes.iter().flat_map(|lane| &lane.events).map(|event| event.start).min()?;
    let last = lanes.iter().flat_map(|lane| &lane.events).map(|event| event.start + event.length).max()?;
    lanes.iter_mut().flat_map(|lane| &mut lane.events).for_each(|event| event.start -= first);
    let events = lanes.iter().map(|lane| lane.events.len()).sum();
    fewer(&mut lanes, last - first, MOST_EVENTS);
    let cut = ranks.len().checked_sub(RANKS + 1).map(|more| format!(" {} more ranks are not drawn.", more + 1));
    let clock = match job.clock.uncertainty_ns {
        Some(error) => format!("Clocks are aligned on collective end times, to {error}."),
        None => "Times are those of each host's wall clock.".to_owned(),
    };
    let note = format!("{clock} Between collectives a rank does its own work, or is idle.{}", cut.unwrap_or_default());
    let (names, colours, classes) = names.finish();
    let (texts, details) = (vec![String::new()], vec![[0; 7]]);
    Lanes { span: last - first, names, colours, classes, lanes, events, texts, details, note, ..Lanes::default() }
        .encoded()
}

/// Rows on the scale of the job: its longest rank, so that a wait is seen against all of the time.
fn on_scale(job: &FleetJob, title: &str, rows: &[Row], key: &[(String, String)]) -> String {
    let reach = job.ranks.iter().map(|rank| rank.span_ns).max().unwrap_or_default().get() as f64;
    let axis = Some(("device time of the rank", nanoseconds as fn(f64) -> String));
    Rows { title, rows, axis, reach, key, room: ROOM }.draw()
}

/// Each rank as one bar of its parts.
fn device_time(job: &FleetJob) -> Vec<Row> {
    let row = |rank: &FleetRank| {
        let mut from = 0.0;
        let idle: Nanos = rank.idle.iter().map(|part| part.ns).sum();
        let parts = [
            ("compute", COMPUTE, rank.compute_ns),
            ("exposed communication", COMMUNICATION, rank.communication_exposed_ns),
            ("exposed copies", COPIES, rank.copies_exposed_ns),
            ("idle", IDLE, idle),
        ];
        let bars = parts.into_iter().map(|(part, class, time)| {
            let start = from;
            from += time.get() as f64;
            Bar { from: start, to: from, class: class.to_owned(), hint: format!("{part}: {time}"), interval: None }
        });
        Row {
            name: format!("rank {}", fleet::name(rank.rank)),
            bars: bars.collect(),
            figure: format!("{}, busy {} of it", rank.span_ns, percent(time_share(rank.busy_ns, rank.span_ns))),
        }
    };
    job.ranks.iter().take(RANKS).map(row).collect()
}

/// Each rank's waiting, and the waiting for it.
fn waiting(job: &FleetJob) -> Vec<Row> {
    let row = |rank: &FleetRank| {
        let (waited, waited_for) = (rank.waited_ns?, rank.waited_for_ns?);
        let bar = |hint: &str, class: &str, time: Nanos| Bar {
            from: 0.0,
            to: time.get() as f64,
            class: class.to_owned(),
            hint: format!("{hint}: {time}"),
            interval: None,
        };
        Some(Row {
            name: format!("rank {}", fleet::name(rank.rank)),
            bars: vec![bar("waits", WAITS, waited), bar("others wait for it", "c-lost", waited_for)],
            figure: format!("waits {waited}, others wait {waited_for} for it"),
        })
    };
    job.ranks.iter().filter_map(row).take(RANKS).collect()
}

/// One quantity, run by run, as bars: a change stands out, and every run has its name.
fn series(trend: &Trend) -> String {
    let row = |point: &types::TrendPoint| Row {
        name: point.run.clone(),
        bars: vec![Bar {
            from: 0.0,
            to: point.value,
            class: if trend.changes.iter().any(|change| change.run == point.run) { "c-lost" } else { "c-0" }.to_owned(),
            hint: format!("{}: {}", point.started_at, point.value),
            interval: None,
        }],
        figure: decimal(point.value),
    };
    let drawn: Vec<Row> = trend.points.iter().rev().take(RANKS).rev().map(row).collect();
    rows(&format!("{}, {}", trend.subject, trend.quantity), &drawn, (&trend.quantity, decimal))
}
