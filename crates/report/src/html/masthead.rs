//! What stands above the sections of every page: what a reader must know before any number, what follows from it, and what the
//! page is of.

use types::{Caveat, CaveatKind, Metrics, RunManifest};

use crate::pages::run::findings;
use crate::render::html_line;
use crate::render::text::{code, prose};
use crate::words::caveat::{READ_FIRST, follows, title};
use crate::words::number::{count, grouped, ranges};

/// One thing to know before any number.
pub(super) struct Notice {
    title: &'static str,
    /// In the notation of pages.
    text: String,
    follows: &'static str,
}

impl Notice {
    /// What a sentence says, of a kind.
    pub(super) fn new(kind: CaveatKind, text: &str) -> Self {
        Self { title: title(kind), follows: follows(kind), ..Self::plain(text) }
    }

    /// A sentence that says itself what follows.
    pub(super) fn plain(text: &str) -> Self {
        Self { title: "", text: findings::finished(text), follows: "" }
    }
}

/// Those of a run.
pub(super) fn notices(caveats: &[Caveat]) -> Vec<Notice> {
    let said = caveats.iter().filter(|caveat| !caveat.text.is_empty());
    said.map(|caveat| Notice::new(caveat.kind, &caveat.text)).collect()
}

/// The banner, with all of a kind together; empty where there is nothing to know.
pub(super) fn banner(notices: &[Notice]) -> String {
    let item = |of_kind: &[Notice]| {
        let texts: Vec<String> = of_kind.iter().map(|notice| html_line(&notice.text)).collect();
        let Notice { title, follows, .. } = &of_kind[0];
        let bold = if title.is_empty() { String::new() } else { format!("<strong>{title} {follows}</strong> ") };
        format!("<li>{bold}{}</li>\n", texts.join(" "))
    };
    let items: String = notices.chunk_by(|one, other| one.title == other.title).map(item).collect();
    if items.is_empty() {
        return items;
    }
    format!(
        "<div class=\"callout\" id=\"read-first\" role=\"note\"><strong>{READ_FIRST}</strong>\n<ul>\n{items}</ul></div>\n"
    )
}

/// Names with their values, in the notation of pages.
pub(super) type About = Vec<(&'static str, Option<String>)>;

/// What a reader wants to know of a page at once; the rest is behind it.
const AT_ONCE: [&str; 11] =
    ["model", "inputs", "workload", "server", "load", "sweep", "ranks", "where", "device", "first side", "second side"];

/// What a page is of, on a line, with all that is known of it behind that; names without a value are left out.
pub(super) fn about(rows: About) -> String {
    let rows: Vec<_> = rows.into_iter().filter_map(|(name, value)| Some((name, html_line(&value?)))).collect();
    let line: Vec<&str> =
        rows.iter().filter(|(name, _)| AT_ONCE.contains(name)).map(|(_, value)| value.as_str()).collect();
    let line = if line.is_empty() { "About this page".to_owned() } else { line.join(" · ") };
    let row = |(name, value): &(&str, String)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n");
    let rows: String = rows.iter().map(row).collect();
    format!("<details class=\"about-run\"><summary>{line}</summary>\n<dl class=\"facts\">\n{rows}</dl></details>\n")
}

/// What a run was: what ran, where, when, from which files, by which version.
pub(super) fn of_run(metrics: &Metrics) -> About {
    let header = &metrics.run;
    let weights = header.weights.as_deref().map(|weights| format!(", {} weights", prose(weights))).unwrap_or_default();
    let model = header.model.as_deref().map(|model| format!("{}{weights}", prose(model)));
    let mut rows = vec![("model", model), ("inputs", inputs(metrics)), ("where", place(metrics))];
    rows.push(("files", files(metrics)));
    rows.push(("run", (!header.id.is_empty()).then(|| code(&header.id))));
    rows
}

/// When a run began, by which command and version.
pub(super) fn of_manifest(manifest: Option<&RunManifest>) -> About {
    let command =
        manifest.filter(|manifest| !manifest.command.is_empty()).map(|manifest| code(&manifest.command.join(" ")));
    let version = manifest.map(|manifest| format!("llm-perf {}", prose(&manifest.tool_version)));
    vec![
        ("command", command),
        ("when", manifest.map(|manifest| prose(&seconds(&manifest.started_at)))),
        ("version", version),
    ]
}

/// A time of day to the second.
fn seconds(time: &str) -> String {
    let (day, rest) = time.split_at_checked(19).unwrap_or((time, ""));
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    format!("{} {zone}", day.replacen('T', " ", 1)).trim_end().to_owned()
}

/// `3 inputs: 286 prompt tokens, 30 generated, batch 1`, in ranges where they differ.
fn inputs(metrics: &Metrics) -> Option<String> {
    let inputs = &metrics.conditions.inputs;
    if inputs.is_empty() {
        return None;
    }
    let values = |value: fn(&types::InputFacts) -> u64| {
        let mut found: Vec<u32> = inputs.iter().filter_map(|input| u32::try_from(value(input)).ok()).collect();
        found.sort_unstable();
        found.dedup();
        if found.len() > 3 {
            format!("{} to {}", grouped(found[0]), grouped(found[found.len() - 1]))
        } else {
            found.iter().map(|one| grouped(*one)).collect::<Vec<_>>().join(", ")
        }
    };
    let tokens = values(|input| input.prompt_tokens);
    let generated = values(|input| input.generated_tokens);
    let batch = values(|input| input.batch);
    let of = count(inputs.len() as u64, "input");
    Some(format!("{of}: {tokens} prompt tokens, {generated} generated, batch {batch}"))
}

/// The devices, each kind once.
fn place(metrics: &Metrics) -> Option<String> {
    let mut kinds: Vec<(&str, u64)> = Vec::new();
    for device in &metrics.devices {
        match kinds.iter_mut().find(|(name, _)| *name == device.name) {
            Some((_, count)) => *count += 1,
            None => kinds.push((&device.name, 1)),
        }
    }
    let kind =
        |(name, count): &(&str, u64)| if *count > 1 { format!("{count} x {}", prose(name)) } else { prose(name) };
    let mut ranks: Vec<u32> = metrics.times.ranks.iter().map(|rank| rank.rank).collect();
    ranks.sort_unstable();
    let ranks = if ranks.len() > 1 { format!(", ranks {}", ranges(&ranks)) } else { String::new() };
    (!kinds.is_empty()).then(|| kinds.iter().map(kind).collect::<Vec<_>>().join(", ") + &ranks)
}

/// Files of other tools that the run was read from.
fn files(metrics: &Metrics) -> Option<String> {
    const MOST: usize = 3;
    let sources = &metrics.conditions.trace.as_ref()?.sources;
    let file =
        |source: &types::TraceSource| format!("{} ({}, {})", code(&source.path), prose(&source.format), source.bytes);
    let mut shown: Vec<String> = sources.iter().take(MOST).map(file).collect();
    if sources.len() > MOST {
        shown.push(format!("{} more", sources.len() - MOST));
    }
    (!shown.is_empty()).then(|| shown.join(", "))
}

#[cfg(test)]
mod tests {
    use types::Facts;

    use super::*;

    #[test]
    fn a_banner_says_what_is_known_and_what_follows() {
        let mut caveat = Caveat::new(CaveatKind::Disturbed, Facts::new());
        caveat.text = "Other work disturbed 9 of 9 runs".to_owned();
        let shown = banner(&notices(&[caveat, Caveat::new(CaveatKind::Partial, Facts::new())]));
        assert_eq!(shown.matches("<li>").count(), 1, "{shown}");
        assert!(shown.contains("Read this first"), "{shown}");
        let said =
            "<strong>Machine disturbed. Do not compare these times with those of another run.</strong> Other work";
        assert!(shown.contains(said), "{shown}");
        let twice = ["one", "two"].map(|text| Notice::new(CaveatKind::AssumedDtype, text));
        assert!(banner(&twice).contains("estimates.</strong> One. Two.</li>"), "{}", banner(&twice));
        assert_eq!(banner(&[]), "");
    }

    #[test]
    fn a_time_of_day_is_told_to_the_second() {
        assert_eq!(seconds("2026-11-19T01:42:56.954+00:00"), "2026-11-19 01:42:56 +00:00");
        assert_eq!(seconds("yesterday"), "yesterday");
    }

    #[test]
    fn the_header_says_what_ran_and_names_stay_text() {
        let mut metrics = crate::pages::run::sample::metrics();
        metrics.run.model = Some("<script>".to_owned());
        let shown = about(of_run(&metrics));
        assert!(shown.contains("<dt>run</dt>") && !shown.contains("<script>"), "{shown}");
        assert!(!shown.contains("<dt>command</dt>"), "{shown}");
    }
}
