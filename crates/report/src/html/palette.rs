//! The palette: one colour for each stage, family of kernels and cause of idle time, wherever those are drawn. Copies and
//! communication have the colours of their families in device time too. The colours are in `palette.css`; here is which name has which.

use types::{IdleCause, Stage};

use crate::words::{cause, idle};

const COLOURS: &str = include_str!("palette.css");

/// What has a colour of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Colour<'a> {
    /// A family of kernels, by its name in files.
    Family(&'a str),
    Stage(Stage),
    Idle(IdleCause),
    /// What a lane holds that none of the others are in.
    Kind(&'a str),
}

impl Colour<'_> {
    /// Its class in the style, and, after two dashes, its variable.
    pub(super) fn class(&self) -> String {
        let class = match self {
            Self::Family(name) => format!("f-{name}"),
            Self::Stage(stage) => format!("s-{stage}"),
            Self::Idle(cause) => format!("i-{}", cause.name()),
            Self::Kind(name) => format!("k-{name}"),
        };
        // A document may name a family that this version does not know.
        if value(&class).is_some() { class } else { "f-other".to_owned() }
    }

    /// What a legend calls it.
    pub(super) fn label(&self) -> &str {
        match self {
            Self::Family(name) => cause::family(name),
            Self::Stage(stage) => stage.name(),
            Self::Idle(cause) => idle::cause(*cause),
            Self::Kind("waits") => "waiting for the last rank",
            Self::Kind("calls") => "calls of the runtime",
            Self::Kind("same") => "changed by less than 2%",
            Self::Kind("slower-1") => "up to 15% more time",
            Self::Kind("slower-2") => "15% more time or more",
            Self::Kind("faster-1") => "up to 15% less time",
            Self::Kind("faster-2") => "15% less time or more",
            Self::Kind("base-only") => "first side only",
            Self::Kind("with-only") => "second side only",
            // Shades that mean nothing.
            Self::Kind(name) if name.starts_with("frame-") => "",
            Self::Kind(name) => name,
        }
    }
}

/// The class of a cause of lost time or of the critical path, by its words; absent where it has no colour of its own.
pub(super) fn of_words(words: &str) -> Option<String> {
    let idle = IdleCause::ALL.into_iter().find(|one| idle::cause(*one) == words);
    let family = || cause::FAMILIES.iter().find(|(_, name)| *name == words).map(|(family, _)| Colour::Family(family));
    idle.map(Colour::Idle).or_else(family).map(|colour| colour.class())
}

/// The parts of a device's time that are no cause of idle time.
pub(super) const COMPUTE: &str = "k-compute";
pub(super) const COMMUNICATION: &str = "f-communication";
pub(super) const COPIES: &str = "f-memcpy";
/// What is in none of the parts of a bar.
pub(super) const REST: &str = "k-rest";
/// Waiting for another rank.
pub(super) const WAITS: &str = "k-waits";

/// The colour of a class as it is written in the style.
fn value(class: &str) -> Option<&'static str> {
    let (_, rest) = COLOURS.split_once(&format!("--{class}:"))?;
    rest.split(';').next()
}

/// The class of letters on a colour: whichever of white and black is read on it.
pub(super) fn ink(class: &str) -> &'static str {
    let class = class.split(' ').next().unwrap_or_default();
    let part = |colour: &str, at: usize| u32::from_str_radix(colour.get(at..at + 2)?, 16).ok();
    let brightness = |colour: &str| Some(299 * part(colour, 1)? + 587 * part(colour, 3)? + 114 * part(colour, 5)?);
    if value(class).and_then(brightness).is_some_and(|brightness| brightness > 140_000) { "off" } else { "on" }
}

#[cfg(test)]
mod tests {
    use analysis::kernel::Family;

    use super::*;

    /// As an eye sees a colour that lacks one kind of cone (Machado, Oliveira and Fernandes 2009): all, no red, no green.
    const EYES: [[[f64; 3]; 3]; 3] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
    ];

    /// A colour in CIE L*a*b*, as one of these eyes sees it.
    fn seen(colour: &str, eye: &[[f64; 3]; 3]) -> [f64; 3] {
        let linear = [1, 3, 5].map(|at| {
            let part = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        let times = |row: [f64; 3], by: [f64; 3]| row.iter().zip(by).map(|(a, b)| a * b).sum::<f64>();
        let rgb = eye.map(|row| times(row, linear).clamp(0.0, 1.0));
        let f = |part: f64| if part > 0.008_856 { part.cbrt() } else { 7.787 * part + 16.0 / 116.0 };
        let x = f(times([0.412_4, 0.357_6, 0.180_5], rgb) / 0.950_5);
        let y = f(times([0.212_6, 0.715_2, 0.072_2], rgb));
        let z = f(times([0.019_3, 0.119_2, 0.950_5], rgb) / 1.089);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn assert_apart(classes: &[String]) {
        for eye in &EYES {
            for (index, one) in classes.iter().enumerate() {
                for other in &classes[index + 1..] {
                    let [a, b] = [one, other].map(|class| seen(value(class).unwrap(), eye));
                    let far = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    // A difference of 2.3 is just seen between areas that touch.
                    assert!(far > 7.0, "{one} and {other} are {far:.1} apart");
                }
            }
        }
    }

    #[test]
    fn every_stage_family_and_cause_has_a_colour_that_every_eye_tells_from_the_others() {
        let stages = Stage::ALL.map(|stage| format!("s-{stage}"));
        let families = Family::ALL.map(|family| format!("f-{}", family.name()));
        let causes = IdleCause::ALL.map(|cause| format!("i-{}", cause.name()));
        for classes in [&stages[..], &families, &causes] {
            assert_apart(classes);
        }
        for class in stages.iter().chain(&families).chain(&causes) {
            assert!(COLOURS.contains(&format!(".{class}{{fill:var(--{class});background:var(--{class})}}")), "{class}");
        }
    }

    #[test]
    fn a_family_that_is_not_known_has_the_colour_of_the_others_and_letters_are_read() {
        assert_eq!(Colour::Family("\"><script>").class(), "f-other");
        assert_eq!(Colour::Stage(Stage::Decode).class(), "s-decode");
        assert_eq!((ink("s-decode"), ink("f-convolution")), ("on", "off"));
    }
}
