//! Suites of tests that need something which a machine may lack.
//!
//! A test whose need is missing counts as ignored, and its reason is printed when the suite ends. Where the environment demands the
//! need, by its name in `LLM_PERF_TEST_REQUIRE`, the test fails instead. Such a suite is declared with `harness = false` and
//! [`suite!`](crate::suite!); tests that need nothing are ordinary ones, in suites of their own.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use crate::need::{NAMES, Need};

/// Names of needs, separated by commas, whose absence is a failure.
const REQUIRE: &str = "LLM_PERF_TEST_REQUIRE";

/// One test, and what it needs.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// The name of the function, with the module it is in.
    pub name: &'static str,
    /// All of these are needed.
    pub needs: &'static [Need],
    /// Panics where the claim of the name does not hold.
    pub body: fn(),
}

/// A test that is not run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Skipped {
    name: &'static str,
    reason: String,
}

/// Makes `main` of the tests of a suite, in groups that need the same:
/// `suite! { [Need::Browser] => { one, two }  [Need::Browser, Need::Axe] => { page::three } }`.
#[macro_export]
macro_rules! suite {
    ($($needs:expr => { $($test:path),+ $(,)? })+) => {
        fn main() -> std::process::ExitCode {
            let tests = [$($($crate::suite::Test { name: stringify!($test), needs: &$needs, body: $test }),+),+];
            $crate::suite::run(concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_CRATE_NAME")), &tests)
        }
    };
}

/// Runs the tests that the arguments of the process ask for.
pub fn run(suite: &str, tests: &[Test]) -> ExitCode {
    let demanded = match demanded(&std::env::var(REQUIRE).unwrap_or_default()) {
        Ok(demanded) => demanded,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let arguments = Arguments::from_args();
    let mut missing = Missing::default();
    let (mut trials, mut skipped) = (Vec::new(), Vec::new());
    for test in tests {
        let lacked = missing.of(test.needs);
        let is_skipped = lacked.as_ref().is_some_and(|(need, _)| !demanded.iter().any(|name| name == need.name()));
        let reason = lacked.map(|(_, reason)| reason);
        let trial = trial(*test, reason.clone()).with_ignored_flag(is_skipped);
        if let Some(reason) = reason.filter(|_| is_skipped && !arguments.is_filtered_out(&trial)) {
            skipped.push(Skipped { name: test.name, reason });
        }
        trials.push(trial);
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list && !arguments.ignored && !arguments.include_ignored {
        for Skipped { name, reason } in skipped {
            println!("skipped: {suite}::{name}: {reason}");
        }
    }
    conclusion.exit_code()
}

/// A test that fails with the reason if it is run although something is missing.
fn trial(test: Test, reason: Option<String>) -> Trial {
    Trial::test(test.name, move || match reason {
        Some(reason) => Err(Failed::from(reason)),
        None => {
            (test.body)();
            Ok(())
        }
    })
}

/// The names in the value of the variable; one that names no need would demand nothing in silence.
fn demanded(value: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> =
        value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    match names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        Some(name) => Err(format!("{REQUIRE} names `{name}`; expected {}", NAMES.join(", "))),
        None => Ok(names),
    }
}

/// What is missing, each need asked for once: starting an interpreter takes a while.
#[derive(Default)]
struct Missing(Vec<(Need, Option<String>)>);

impl Missing {
    /// The first need that is missing, and the reason.
    fn of(&mut self, needs: &[Need]) -> Option<(Need, String)> {
        needs.iter().find_map(|need| Some((*need, self.reason(*need)?)))
    }

    fn reason(&mut self, need: Need) -> Option<String> {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == need) {
            return known.clone();
        }
        let reason = need.missing();
        self.0.push((need, reason.clone()));
        reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_that_no_test_knows_is_refused() {
        assert_eq!(demanded(" browser,axe ,git,"), Ok(vec!["browser".to_owned(), "axe".into(), "git".into()]));
        assert_eq!(demanded(""), Ok(Vec::new()));
        assert!(demanded("browsers").unwrap_err().contains("names `browsers`; expected browser, firefox"));
    }

    #[test]
    fn the_first_need_that_is_missing_is_the_reason() {
        let (there, one, other) = (Need::Git, Need::Reference("no-such-file"), Need::Reference("nor-this"));
        let mut missing = Missing(vec![(there, None)]);
        assert_eq!((missing.of(&[]), missing.of(&[there])), (None, None));
        let (need, reason) = missing.of(&[there, one, other]).unwrap();
        assert!(need == one && reason.contains("no-such-file is not there"), "{reason}");
    }
}
