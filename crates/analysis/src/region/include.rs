//! Expressions that name regions, and how the profiler spells them.
//!
//! `A` is every range of that name, `A::A1` every A1 directly inside an A, `LLM@prefill` one of a domain, and `*` and `?`
//! stand for any text and any letter. Real names contain `::` and `@` as well (`cub::DeviceScan`), so that a range whose
//! name is the whole text wins over the path it could also be. An expression that ends in a slash is the profiler's own
//! and handed on as it is.

use types::{RegionStyle, range_expression};

use super::key::RegionKey;
use super::wildcard::wildcard;

/// One expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    text: String,
    /// What it may mean, most literal first: the first that is there counts.
    readings: Vec<Reading>,
    is_native: bool,
}

/// One meaning of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reading {
    domain: Option<String>,
    steps: Vec<Step>,
    /// Whether the first name is the outermost range.
    is_anchored: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A range of that name, which may hold wildcards where `is_pattern`.
    Name { text: String, is_pattern: bool },
    /// Exactly one range, whatever its name.
    Any,
    /// Any number of ranges.
    Gap,
}

impl Include {
    /// Understands an expression.
    pub fn new(text: &str) -> Self {
        let is_native = text.len() > 1 && text.ends_with('/') && !text.ends_with("\\/");
        let readings = if is_native { vec![native(text)] } else { plain(text) };
        Self { text: text.to_owned(), readings, is_native }
    }

    /// As it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it can only be spelled for the profiler once the regions are known.
    pub fn needs_survey(&self) -> bool {
        !self.is_native && self.text.contains(['*', '?'])
    }

    /// What the profiler is told where the regions are not known: every meaning that can be spelled.
    pub fn expressions(&self) -> Vec<String> {
        if self.is_native {
            return vec![self.text.clone()];
        }
        let mut all: Vec<String> = Vec::new();
        for reading in &self.readings {
            // A name with an at sign in it is rarer than a domain.
            let is_doubtful = reading.domain.is_none() && self.readings.len() > 1 && self.text.contains('@');
            let names: Vec<&str> = reading.steps.iter().filter_map(Step::literal).collect();
            if !is_doubtful && names.len() == reading.steps.len() {
                all.push(range_expression(reading.domain.as_deref(), &names, RegionStyle::PushPop));
            }
        }
        all.dedup();
        all
    }

    /// Which of `regions` it names, by their places. What lies inside of them is not listed.
    pub fn matching(&self, regions: &[RegionKey]) -> Vec<usize> {
        let of = |reading: &Reading| -> Vec<usize> {
            let places = regions.iter().enumerate();
            places.filter(|(_, region)| reading.names(region)).map(|(place, _)| place).collect()
        };
        self.readings.iter().map(of).find(|found| !found.is_empty()).unwrap_or_default()
    }
}

/// The profiler's expression for exactly this nesting of ranges.
pub fn expression_of(key: &RegionKey) -> String {
    range_expression(key.domain.as_deref(), &key.segments, key.style)
}

/// The meanings of a user's expression: the whole as one name, then with a domain, then as a path, then both.
fn plain(text: &str) -> Vec<Reading> {
    let step = |name: &str| Step::Name { text: name.to_owned(), is_pattern: name.contains(['*', '?']) };
    let path = |text: &str| -> Vec<Step> { text.split("::").map(step).collect() };
    let is_path = |text: &str| text.contains("::") && text.split("::").all(|name| !name.is_empty());
    let reading =
        |domain: Option<&str>, steps| Reading { domain: domain.map(str::to_owned), steps, is_anchored: false };
    let mut readings = vec![reading(None, vec![step(text)])];
    let with_domain = text.split_once('@').filter(|(domain, name)| !domain.is_empty() && !name.is_empty());
    if let Some((domain, name)) = with_domain {
        readings.push(reading(Some(domain), vec![step(name)]));
        if is_path(name) {
            readings.push(reading(Some(domain), path(name)));
        }
    }
    if is_path(text) {
        readings.push(reading(None, path(text)));
    }
    readings
}

/// `LLM@A/*/B/`, with signs inside names behind a backslash.
fn native(text: &str) -> Reading {
    let mut domain = None;
    let (mut steps, mut name) = (Vec::new(), String::new());
    let (mut is_escaped, mut has_escape, mut is_anchored) = (false, false, false);
    for sign in text.chars() {
        match sign {
            _ if is_escaped => {
                name.push(sign);
                is_escaped = false;
            }
            '\\' => (is_escaped, has_escape) = (true, true),
            '@' if domain.is_none() && steps.is_empty() => domain = Some(std::mem::take(&mut name)),
            '[' => is_anchored = true,
            ']' => {}
            '/' => {
                let name = std::mem::take(&mut name);
                steps.push(match name.as_str() {
                    "*" if !has_escape => Step::Gap,
                    "+" if !has_escape => Step::Any,
                    _ => Step::Name { text: name, is_pattern: false },
                });
                has_escape = false;
            }
            _ => name.push(sign),
        }
    }
    Reading { domain, steps, is_anchored }
}

impl Reading {
    /// Whether the innermost range of a region is the last one meant here.
    fn names(&self, region: &RegionKey) -> bool {
        let same_domain = match (&self.domain, region.domain.as_deref()) {
            (None, None) => true,
            (Some(wanted), Some(domain)) => wanted == domain || wildcard(wanted, domain),
            (Some(wanted), None) => wanted == "*",
            (None, Some(_)) => false,
        };
        if !same_domain {
            return false;
        }
        let names: Vec<&str> = region.segments.iter().map(|name| &**name).collect();
        let starts = if self.is_anchored { 0..1 } else { 0..names.len() };
        starts.into_iter().any(|start| fits(&self.steps, &names[start..]))
    }
}

impl Step {
    fn literal(&self) -> Option<&str> {
        match self {
            Self::Name { text, is_pattern: false } => Some(text),
            _ => None,
        }
    }

    fn is(&self, name: &str) -> bool {
        match self {
            Self::Name { text, is_pattern } => text == name || *is_pattern && wildcard(text, name),
            Self::Any => true,
            Self::Gap => false,
        }
    }
}

/// Whether the steps take up all of the names.
fn fits(steps: &[Step], names: &[&str]) -> bool {
    match (steps.split_first(), names.split_first()) {
        (None, _) => names.is_empty(),
        (Some((Step::Gap, rest)), _) => (0..=names.len()).any(|skip| fits(rest, &names[skip..])),
        (Some((step, rest)), Some((name, others))) => step.is(name) && fits(rest, others),
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::key;
    use super::*;

    fn matched(text: &str, regions: &[&str]) -> Vec<String> {
        let keys: Vec<RegionKey> = regions.iter().map(|path| key(path)).collect();
        Include::new(text).matching(&keys).into_iter().map(|place| regions[place].to_owned()).collect()
    }

    #[test]
    fn a_name_is_found_at_any_depth_and_a_path_only_where_it_is_nested_so() {
        let regions = ["A", "A/A1", "B", "B/A1", "B/A", "B/A/A1"];
        assert_eq!(matched("A", &regions), ["A", "B/A"]);
        assert_eq!(matched("A1", &regions), ["A/A1", "B/A1", "B/A/A1"]);
        assert_eq!(matched("A::A1", &regions), ["A/A1", "B/A/A1"]);
        assert_eq!(matched("B::A1", &regions), ["B/A1"]);
        assert_eq!(matched("C", &regions), [""; 0]);
    }

    #[test]
    fn a_literal_name_wins_over_a_path_and_over_a_domain() {
        assert_eq!(matched("A::A1", &["A/A1", "A::A1"]), ["A::A1"]);
        let scan = "CCCL@cub::DeviceScan::ExclusiveScan";
        assert_eq!(matched(scan, &[scan, "CCCL@cub/DeviceScan/ExclusiveScan"]), [scan]);
        let literal =
            RegionKey { domain: None, style: types::RegionStyle::PushPop, segments: vec!["LLM@prefill".into()] };
        assert_eq!(Include::new("LLM@prefill").matching(&[key("LLM@prefill"), literal]), [1]);
        assert_eq!(matched("decode*", &["decode*", "decode_all"]), ["decode*", "decode_all"]);
    }

    #[test]
    fn a_domain_is_part_of_the_name_and_may_be_any() {
        let regions = ["prefill", "LLM@prefill", "LLM@decode_all/decode_step"];
        assert_eq!(matched("prefill", &regions), ["prefill"]);
        assert_eq!(matched("LLM@prefill", &regions), ["LLM@prefill"]);
        assert_eq!(matched("*@prefill", &regions), ["prefill", "LLM@prefill"]);
        assert_eq!(matched("LLM@decode*", &regions), ["LLM@decode_all/decode_step"]);
    }

    #[test]
    fn wildcards_stand_for_letters_of_one_name() {
        let regions = ["decode_0", "decode_1", "decode", "encode", "decode_0/decode_0_mlp"];
        assert_eq!(matched("decode_?", &regions), ["decode_0", "decode_1"]);
        assert_eq!(matched("decode*", &regions), ["decode_0", "decode_1", "decode", "decode_0/decode_0_mlp"]);
        assert_eq!(matched("*_0::*mlp", &regions), ["decode_0/decode_0_mlp"]);
        assert_eq!(matched("*code", &regions), ["decode", "encode"]);
    }

    #[test]
    fn the_profiler_is_told_every_meaning_that_it_can_be_told() {
        let told = |text: &str| Include::new(text).expressions();
        assert_eq!(told("A"), ["A/"]);
        assert_eq!(told("A::A1"), ["A::A1/", "A/A1/"]);
        assert_eq!(told("LLM@prefill"), ["LLM@prefill/"]);
        assert_eq!(told("LLM@A::B"), ["LLM@A::B/", "LLM@A/B/"]);
        assert_eq!(told("layer[3]/mlp"), ["layer\\[3\\]\\/mlp/"]);
        assert_eq!(told("::A"), ["::A/"]);
        assert!(told("decode*").is_empty() && Include::new("decode*").needs_survey());
        assert_eq!(expression_of(&key("LLM@A/B,C")), "LLM@A/B\\,C/");
        let started = RegionKey { style: types::RegionStyle::StartEnd, ..key("A") };
        assert_eq!(expression_of(&started), "A");
    }

    #[test]
    fn the_profilers_own_expressions_are_handed_on_and_understood() {
        let include = Include::new("LLM@A/*/C/");
        assert_eq!((include.expressions(), include.needs_survey()), (vec!["LLM@A/*/C/".to_owned()], false));
        assert_eq!(matched("LLM@A/*/C/", &["LLM@A/C", "LLM@A/B/C", "LLM@C", "A/C"]), ["LLM@A/C", "LLM@A/B/C"]);
        assert_eq!(matched("A/+/C/", &["A/C", "A/B/C"]), ["A/B/C"]);
        assert_eq!(matched("[A/", &["A", "B/A"]), ["A"]);
        assert_eq!(matched("layer\\[3\\]/", &["layer[3]", "layer3"]), ["layer[3]"]);
        assert_eq!(matched("/", &["A"]), [""; 0]);
    }
}
