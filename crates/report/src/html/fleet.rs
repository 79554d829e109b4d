//! A fleet as a page: ranks in pictures, then the Markdown page of it.

use types::view::RankLane;
use types::{Fleet, FleetJob, FleetRank, IdleCause, Nanos, RunManifest, Trend};

use super::answers::Answer;
use super::canvas;
use super::columns::{Event, Lane, Lanes};
use super::gather::{fewer, nested};
use super::lanes::MOST_EVENTS;
use super::masthead::Notice;
use super::names::Names;
use super::palette::{COMMUNICATION, COMPUTE, COPIES, Colour, WAITS};
use super::rows::{Bar, Part, Row, Rows, named, nanoseconds, rows, stacked};
use super::sheet::Sheet;
use super::shell::{self, Section};
use super::summary::{FirstScreen, Number};
use crate::pages::fleet;
use crate::render::text::{prose, sentence};
use crate::words::caveat::READ_FIRST;
use crate::words::idle;
use crate::words::number::{count, decimal, known, percent, time_share};

/// Room for figures beside ranks.
const ROOM: f64 = 250.0;
/// Ranks drawn.
const RANKS: usize = 128;

/// The page, with the collectives of the first job's ranks on one clock; the manifest is of the run that it is in.
pub fn fleet_page(found: &Fleet, lanes: &[RankLane], manifest: Option<&RunManifest>) -> String {
    let mut sections = Vec::new();
    let mut data = Vec::new();
    for (place, job) in found.jobs.iter().enumerate() {
        let title = format!("Device time of {}", job.job);
        sections.extend(Section::drawn("device-time", &title, busiest(job), device_time(job)));
        let title = format!("Waiting in {}", job.job);
        sections.extend(Section::drawn("waiting", &title, last(job), waiting(job)));
        // A picture of the first job alone: its place in the address is one.
        if let Some(lanes) = (place == 0).then(|| rank_lanes(lanes, job)).flatten() {
            let section = canvas(
                "ranks",
                &format!("Collectives of {} on one clock", job.job),
                "of each rank: waiting and transfer",
            );
            let seen = shell::seen(path(job));
            sections.push(Section { body: seen + &section.body, ..section });
            data.push(("ranks", lanes));
        }
    }
    if !found.trends.is_empty() {
        let body = found.trends.iter().filter_map(series).map(|svg| shell::figure("", &svg)).collect();
        sections.push(Section::new("trends", "Runs over time", body));
    }
    sections.push(Section::new("fleet", "Figures", fleet::page(found).html_below("fleet", READ_FIRST)));
    let names: Vec<&str> = found.jobs.iter().map(|job| job.job.as_str()).collect();
    let title = if names.is_empty() { "Runs over time".to_owned() } else { format!("Fleet: {}", names.join(", ")) };
    let ranks = |job: &FleetJob| count(job.ranks.len() as u64, "rank");
    Sheet {
        title,
        document: "fleet.json",
        notices: found.jobs.iter().flat_map(fleet::caveats).map(|text| Notice::plain(&text)).collect(),
        about: vec![(
            "ranks",
            (!found.jobs.is_empty()).then(|| found.jobs.iter().map(ranks).collect::<Vec<_>>().join(", ")),
        )],
        manifest,
        screen: first_screen(found),
        sections,
        data,
        ..Sheet::default()
    }
    .html()
}

/// The verdict of a job first, then what it rests on and what to do.
fn first_screen(found: &Fleet) -> FirstScreen {
    let mut screen = FirstScreen { source: &["fleet-ranks", "fleet"], ..FirstScreen::default() };
    let mut headlines = Vec::new();
    for job in &found.jobs {
        let of_job = if found.jobs.len() > 1 { format!("{}: ", prose(&job.job)) } else { String::new() };
        // What was recorded is the verdict where nothing stands out.
        let recorded = fleet::headline(job);
        let verdict = job.findings.first().and_then(|finding| finding.evidence.first());
        headlines.push(format!("**{of_job}{}**", verdict.map_or(recorded.clone(), |said| sentence(said))));
        let mut answer = |question, text: String, more| {
            screen.answers.push(Answer { question, text: of_job.clone() + &text, more });
        };
        if verdict.is_some() {
            answer("What was recorded?", recorded.clone(), &["fleet"]);
        }
        for finding in &job.findings {
            let rest = finding.evidence.get(1..).unwrap_or_default();
            answer("Why?", sentence(&rest.join(" ")), &["waiting", "fleet"]);
            answer("What to do?", sentence(&finding.advice), &["fleet"]);
        }
    }
    if let [job] = found.jobs.as_slice() {
        let span = job.ranks.iter().map(|rank| rank.span_ns).max().unwrap_or_default();
        screen.numbers.push(Number::new("ranks", job.ranks.len(), "recorded", &["fleet-ranks"]));
        screen.numbers.push(Number::new("device time", span, "measured, longest rank", &["device-time"]));
        if let Some(rank) = waited_for(job) {
            let name = format!("ranks wait for rank {}", fleet::name(rank.rank));
            screen.numbers.push(Number::new(
                name,
                known(rank.waited_for_ns),
                "measured, mean of the others",
                &["waiting"],
            ));
        }
    }
    let changed: Vec<String> = found.trends.iter().flat_map(fleet::changes).collect();
    if let (false, Some(first)) = (found.trends.is_empty(), changed.first()) {
        headlines.push(format!("**{first}**"));
        let text = changed[1..].join("\n");
        screen.answers.extend((!text.is_empty()).then_some(Answer {
            question: "What else changed?",
            text,
            more: &["trends"],
        }));
    } else if !found.trends.is_empty() {
        headlines.push("**No quantity changed significantly.**".to_owned());
    }
    screen.headline = headlines.join(" ");
    screen
}

/// The rank that the others wait for longest.
fn waited_for(job: &FleetJob) -> Option<&FleetRank> {
    job.ranks.iter().filter(|rank| rank.waited_for_ns > Some(Nanos::ZERO)).max_by_key(|rank| rank.waited_for_ns)
}

fn last(job: &FleetJob) -> Option<String> {
    let rank = waited_for(job)?;
    Some(format!("The others wait longest for rank {}: {}.", fleet::name(rank.rank), known(rank.waited_for_ns)))
}

/// From where to where the share goes for which ranks are busy.
fn busiest(job: &FleetJob) -> Option<String> {
    let mut shares: Vec<f64> = job.ranks.iter().filter_map(|rank| time_share(rank.busy_ns, rank.span_ns)).collect();
    shares.sort_by(f64::total_cmp);
    let (low, high) = (percent(Some(*shares.first()?)), percent(Some(*shares.last()?)));
    let range = if low == high { low } else { format!("{low} to {high}") };
    Some(format!("Devices are busy for {range} of their time, communication included."))
}

/// What the job waits for most.
fn path(job: &FleetJob) -> Option<String> {
    let most = job.critical_path.iter().max_by(|one, other| one.share.total_cmp(&other.share))?;
    let who = most.rank.map_or("communication".to_owned(), |rank| format!("work of rank {rank}"));
    Some(format!("On the critical path over all ranks: {who}, {} of it.", percent(Some(most.share))))
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
fn on_scale(job: &FleetJob, title: &str, rows: &[Row], what: &str, key: &[(String, String)]) -> String {
    let reach = job.ranks.iter().map(|rank| rank.span_ns).max().unwrap_or_default().get() as f64;
    Rows { title, rows, axis: Some((what, nanoseconds)), reach, key, room: ROOM, ..Rows::default() }.draw()
}

/// Each rank as one bar of its parts.
fn device_time(job: &FleetJob) -> Option<String> {
    let mut key: Vec<(String, String)> = Vec::new();
    let mut row = |rank: &FleetRank| {
        let mut parts = vec![
            Part::new("compute", COMPUTE, rank.compute_ns),
            Part::new("exposed communication", COMMUNICATION, rank.communication_exposed_ns),
            Part::new("exposed copies", COPIES, rank.copies_exposed_ns),
        ];
        parts.extend(rank.idle.iter().map(|part| {
            let cause = IdleCause::ALL.into_iter().find(|cause| cause.name() == part.cause);
            let class = cause.map_or("k-rest".to_owned(), |cause| Colour::Idle(cause).class());
            Part::new(format!("idle: {}", idle::named(&part.cause)), class, part.ns)
        }));
        for part in parts.iter().filter(|part| part.time > Nanos::ZERO) {
            if key.iter().all(|(_, name)| *name != part.name) {
                key.push((part.class.clone(), part.name.clone()));
            }
        }
        Row {
            name: format!("rank {}", fleet::name(rank.rank)),
            bars: stacked(&parts, Nanos::ZERO, rank.span_ns),
            figure: format!("{}, busy {} of it", rank.span_ns, percent(time_share(rank.busy_ns, rank.span_ns))),
        }
    };
    let has_time = job.ranks.iter().any(|rank| rank.span_ns > Nanos::ZERO);
    let drawn: Vec<Row> = job.ranks.iter().take(RANKS).map(&mut row).collect();
    has_time.then(|| on_scale(job, "device time of each rank", &drawn, "device time of the rank", &key))
}

/// Each rank's waiting, and the waiting for it.
fn waiting(job: &FleetJob) -> Option<String> {
    let row = |rank: &FleetRank| {
        let (waited, waited_for) = (rank.waited_ns?, rank.waited_for_ns?);
        Some(Row {
            name: format!("rank {}", fleet::name(rank.rank)),
            bars: vec![Bar::of_time(waited, WAITS, "waits"), Bar::of_time(waited_for, "c-lost", "others wait for it")],
            figure: format!("waits {waited}, others wait {waited_for} for it"),
        })
    };
    let drawn: Vec<Row> = job.ranks.iter().filter_map(row).take(RANKS).collect();
    let key = named([(WAITS, "the rank waits in collectives for the last rank"), ("c-lost", "the others wait for it")]);
    let waits = job.ranks.iter().any(|rank| rank.waited_ns > Some(Nanos::ZERO));
    let what = "time, on the scale of the longest rank";
    waits.then(|| on_scale(job, "waiting for the last rank", &drawn, what, &key))
}

/// One quantity, run by run, as bars: a change stands out, and every run has its name.
fn series(trend: &Trend) -> Option<String> {
    let row = |point: &types::TrendPoint| {
        let changes = trend.changes.iter().any(|change| change.run == point.run);
        let class = if changes { "c-lost" } else { "c-0" };
        let bar = Bar::new(point.value, class, format!("{}: {}", point.started_at, point.value));
        Row { name: point.run.clone(), bars: vec![bar], figure: decimal(point.value) }
    };
    let drawn: Vec<Row> = trend.points.iter().rev().take(RANKS).rev().map(row).collect();
    rows(&format!("{}, {}", trend.subject, trend.quantity), &drawn, (&trend.quantity, decimal))
}
