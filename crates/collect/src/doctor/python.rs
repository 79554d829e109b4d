//! Is there a Python that has PyTorch, built for the GPU that is here?

use types::Verdict;

use super::{CheckOutcome, Probe};

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    const PURPOSE: &str = "needed only to measure on PyTorch";
    let environment = &probe.capture.environment;
    let frameworks = &environment.frameworks;
    let Some(python) = &frameworks.python else {
        let said = environment.notes.iter().find(|note| note.contains("cannot list the packages of"));
        let found = said.cloned().unwrap_or_else(|| "python3 not found on PATH".to_owned());
        return CheckOutcome::bad(
            Verdict::Missing,
            found,
            format!("put a python3 with torch on PATH, or set LLM_PERF_PYTHON to one; {PURPOSE}"),
        );
    };
    let (version, path) = (python.version.as_deref().unwrap_or("?"), python.path.as_deref().unwrap_or("python3"));
    let Some(torch) = &frameworks.torch else {
        return CheckOutcome::bad(
            Verdict::Missing,
            format!("Python {version} at {path} has no torch"),
            format!("run `{path} -m pip install torch`, or set LLM_PERF_PYTHON to another Python; {PURPOSE}"),
        );
    };
    let transformers =
        frameworks.transformers.as_ref().map(|version| format!(", transformers {version}")).unwrap_or_default();
    let found = format!("Python {version}, torch {torch}{transformers} at {path}");
    if frameworks.torch_cuda.is_none() && !environment.gpus.is_empty() {
        return CheckOutcome::bad(
            Verdict::Warning,
            format!("{found}; torch is built without CUDA"),
            "install a CUDA build of torch: https://pytorch.org/get-started/locally",
        );
    }
    CheckOutcome::ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn each_kind_of_python_has_its_verdict() {
        let mut probe = sample::h200();
        let torch = "Python 3.12.3, torch 2.11.0+cu130, transformers 5.17.0 at /opt/torch/bin/python3";
        assert_eq!(examine(&probe), CheckOutcome::ok(torch));
        probe.capture.environment.frameworks.torch_cuda = None;
        assert_eq!(examine(&probe).verdict, Verdict::Warning, "a GPU it cannot use");
        probe.capture.environment.gpus.clear();
        assert_eq!(examine(&probe).verdict, Verdict::Ok, "no GPU to use");
        probe.capture.environment.frameworks.torch = None;
        assert_eq!(examine(&probe).verdict, Verdict::Missing);
        probe.capture.environment.frameworks.python = None;
        assert_eq!(examine(&probe).found, "python3 not found on PATH");
        let note = "cannot list the packages of /usr/bin/python3: it timed out";
        probe.capture.environment.notes.push(note.into());
        assert_eq!(examine(&probe).found, note);
    }
}
