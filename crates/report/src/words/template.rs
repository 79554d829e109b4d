//! Sentences with gaps, and the facts that fill them.
//!
//! A line such as `"{idle} of {where}: {launches|launch} per step"` is said where every fact in it is known and left out where one
//! is not. `{name|noun}` counts things in the right number, `{name:bare}` is a share without its base or a number without commas,
//! `{name:exact}` a factor as it was given, `{name:2}` a number with two decimals, `{rows:name}` the facts of this name of all rows
//! with commas between them (each in backticks with `{rows:`name`}`, as clauses with semicolons with `{rows:name;}`), `{name:title}` what people call a counter, `{name:idle}` what
//! the host does in idle time of a cause, `{name:capital}` a remark as the start of a sentence,
//! `{name:clause}` a text without the period at its end.
//! A part in `[[double brackets]]` is left out alone where it cannot be said. In front of a line or such a part, `?name ` says it
//! only where the fact is known, `!name ` only where it is not, and `*name ` once for each row of the fact.

use types::{Base, Fact, Facts, IdleCause};

use super::number::{count, decimal, grouped, percent};
use crate::render::text::capital;

/// Every line that can be said.
pub(crate) fn lines(templates: &[&str], facts: &Facts) -> Vec<String> {
    templates.iter().flat_map(|template| said(template, &[facts])).collect()
}

/// The first line that can be said.
pub(crate) fn first(templates: &[&str], facts: &Facts) -> Option<String> {
    templates.iter().find_map(|template| said(template, &[facts]).into_iter().next())
}

/// The fact of this name in the innermost scope that has it.
fn found<'a>(name: &str, scopes: &[&'a Facts]) -> Option<&'a Fact> {
    scopes.iter().find_map(|facts| facts.get(name))
}

/// One template: no line, one, or one for each row.
fn said(template: &str, scopes: &[&Facts]) -> Vec<String> {
    let (sign, rest) = (template.chars().next(), template.get(1..).unwrap_or_default());
    let condition = || rest.split_once(' ').unwrap_or((rest, ""));
    match sign {
        Some(sign @ ('?' | '!')) => {
            let (name, line) = condition();
            if found(name, scopes).is_some() == (sign == '?') { said(line, scopes) } else { Vec::new() }
        }
        Some('*') => {
            let (name, line) = condition();
            let Some(Fact::Rows(rows)) = found(name, scopes) else { return Vec::new() };
            rows.iter().flat_map(|row| said(line, &[&[row], scopes].concat())).collect()
        }
        _ => whole(template, scopes).into_iter().collect(),
    }
}

/// A line with those of its optional parts that can be said.
fn whole(template: &str, scopes: &[&Facts]) -> Option<String> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, (part, after))) =
        rest.split_once("[[").and_then(|(before, part)| Some((before, part.split_once("]]")?)))
    {
        text += &filled(before, scopes)?;
        text.extend(said(part, scopes));
        rest = after;
    }
    Some(text + &filled(rest, scopes)?)
}

/// The line with its gaps filled; none where a fact is not known.
fn filled(template: &str, scopes: &[&Facts]) -> Option<String> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, gap)) = rest.split_once('{') {
        let (gap, after) = gap.split_once('}')?;
        let (name, form) = match gap.find(['|', ':']) {
            Some(at) => (&gap[..at], &gap[at..]),
            None => (gap, ""),
        };
        let fact = found(name, scopes)?;
        text += before;
        text += &self::fact(fact, form);
        rest = after;
    }
    Some(text + rest)
}

/// A fact in a sentence.
fn fact(fact: &Fact, form: &str) -> String {
    match (fact, form.strip_prefix('|')) {
        (Fact::Count(number), Some(noun)) => count(*number, noun),
        (Fact::Number(number), Some(noun)) if *number == 1.0 => count(1, noun),
        (Fact::Number(number), Some(noun)) => format!("{} {}", decimal(*number), super::number::plural(noun)),
        (Fact::Count(number), None) if form == ":bare" => number.to_string(),
        (Fact::Count(number), None) => grouped(*number),
        (Fact::Number(number), None) if form == ":exact" => {
            format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        (Fact::Number(number), None) if form == ":2" => format!("{number:.2}"),
        (Fact::Number(number), None) => decimal(*number),
        (Fact::Time(time), _) => time.to_string(),
        (Fact::Bytes(bytes), _) => bytes.to_string(),
        (Fact::Rate(rate), _) => rate.to_string(),
        (Fact::Work(work), _) => work.to_string(),
        (Fact::WorkRate(rate), _) => rate.to_string(),
        (Fact::Intensity(intensity), _) => intensity.to_string(),
        (Fact::Share(share), _) => match (form, share.of) {
            (":bare", _) | (_, Base::Itself) => percent(Some(share.share)),
            (_, of) => format!("{} of {}", percent(Some(share.share)), base(of)),
        },
        (Fact::Part(part), _) => base(*part).to_owned(),
        (Fact::Name(name), _) if form == ":idle" => idle(name),
        (Fact::Name(name), _) if form == ":title" => super::counter_rows::title(name),
        (Fact::Name(name), _) if form == ":clause" => name.replace('`', "'").trim_end_matches('.').to_owned(),
        // A backtick would end the code span that a template puts around a name.
        (Fact::Name(name), _) => name.replace('`', "'"),
        (Fact::Yes, _) => String::new(),
        (Fact::Rows(rows), _) if form.starts_with(':') => {
            // In backticks, each of them is.
            let (name, quote) = (form[1..].trim_matches(['`', ';']), if form.ends_with('`') { "`" } else { "" });
            let (between, one) = if form.ends_with(';') { ("; ", ":clause") } else { (", ", "") };
            let each = rows.iter().filter_map(|row| row.get(name)).map(|fact| self::fact(fact, one));
            each.map(|one| format!("{quote}{one}{quote}")).collect::<Vec<_>>().join(between)
        }
        (Fact::Rows(rows), _) => grouped(rows.len() as u64),
        (Fact::Said(remark), _) if form == ":capital" => capital(remark),
        (Fact::Said(remark), _) => remark.to_string(),
    }
}

/// What the host does in idle time of this cause.
fn idle(cause: &str) -> String {
    let known = IdleCause::ALL.into_iter().find(|known| known.name() == cause);
    known.map_or_else(|| cause.to_owned(), |known| super::idle::cause(known).to_owned())
}

/// What a share is of, and parts of a run.
pub(crate) fn base(base: Base) -> &'static str {
    match base {
        Base::Run => "the run",
        Base::OutsideStages => "the time outside stages",
        Base::DeviceTime => "the device span",
        Base::BusyTime => "GPU busy time",
        Base::KernelTime => "kernel time",
        Base::GemmTime => "GEMM time",
        Base::ProductTime => "the time of GEMMs and convolutions",
        Base::OperatorTime => "operator time",
        Base::LostTime => "lost time",
        Base::CommunicationTime => "communication time",
        Base::Latency => "request latency",
        Base::OtherRanks => "the other ranks' time",
        Base::ProfiledPass => "the profiled pass",
        Base::PeakCompute => "peak FLOP/s",
        Base::PeakBandwidth => "peak bandwidth",
        Base::LinkBandwidth => "link bandwidth",
        Base::Itself => "it",
        Base::Stage(stage) => stage.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Nanos, Remark, Stage};

    fn facts() -> Facts {
        let call = |name: &str, calls: u64| Facts::new().with("call", name).with("calls", calls);
        Facts::new()
            .with("idle", Nanos::new(237_000_000))
            .with_share("idle_share", 0.943, Base::Stage(Stage::Decode))
            .with("launches", 1_280.0)
            .with("steps", 1_u64)
            .with_if("repeats", true)
            .with("calls", vec![call("cudaFree", 1), call("cuda`Malloc", 2)])
    }

    #[test]
    fn a_line_is_said_where_all_its_facts_are_known() {
        let templates =
            ["{idle} idle ({idle_share}), {idle_share:bare}", "{unknown} things", "{launches|launch} in {steps|step}"];
        let expected = ["237 ms idle (94.3% of decode), 94.3%", "1,280 launches in 1 step"];
        assert_eq!(lines(&templates, &facts()), expected);
    }

    #[test]
    fn optional_parts_and_conditions_of_rows_are_said_where_they_can_be() {
        let templates = [
            "{idle}[[ of {unknown}]][[!unknown  of something]][[, {steps|step}]]",
            "*calls ?repeats `{call}`[[: {calls:bare}]]",
            "*calls !calls never",
        ];
        let expected = ["237 ms of something, 1 step", "`cudaFree`: 1", "`cuda'Malloc`: 2"];
        assert_eq!(lines(&templates, &facts()), expected);
    }

    #[test]
    fn rows_are_listed_counters_have_titles_and_remarks_begin_sentences() {
        let facts = facts().with("counter", "busy_above_wall").with("pace", 1.05).with("reason", Remark::said("a `b`"));
        let templates = ["{calls:call}; {counter:title}; {pace:2}", "{reason:capital}: {reason}"];
        let expected = ["cudaFree, cuda'Malloc; GPU busy times above wall time; 1.05", "A `b`: a `b`"];
        assert_eq!(lines(&templates, &facts), expected);
    }

    #[test]
    fn conditions_and_rows_choose_lines() {
        let templates =
            ["?repeats again", "!repeats once", "?nothing never", "*calls `{call}`: {calls|call} of {idle}"];
        let expected = ["again", "`cudaFree`: 1 call of 237 ms", "`cuda'Malloc`: 2 calls of 237 ms"];
        assert_eq!(lines(&templates, &facts()), expected);
        assert_eq!(first(&["{unknown}", "!repeats no", "yes"], &facts()).as_deref(), Some("yes"));
    }
}
