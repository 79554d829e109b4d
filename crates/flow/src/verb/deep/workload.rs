//! Which workload the passes of our own engines are of: they say so themselves.

use collect::run::RunFolder;
use types::{Facts, Remark, TracedWorkload, Workload};

use super::passes;
use super::request::DeepRequest;

/// The workload as the program ran it; absent where it says nothing of the kind, and where the user says what it is.
pub(super) fn known(folder: &RunFolder, request: &DeepRequest) -> Option<TracedWorkload> {
    let said = &request.subject.workload;
    if said.profile.is_some() || !said.overridden.is_empty() {
        return None;
    }
    let ran = passes::baseline_run(folder)?;
    let (workload, missing) = match ran.workloads.as_slice() {
        [] => {
            let unsaid = || Remark::new("workload.not-reported", Facts::new());
            (None, vec![ran.not_modelled.map_or_else(unsaid, Remark::said)])
        }
        [first, others @ ..] => match others.iter().find(|other| !alike(first, other)) {
            Some(other) => (None, vec![differing(first, other)]),
            None => (Some(first.clone()), Vec::new()),
        },
    };
    let evidence = workload.as_ref().map(|workload| {
        let Workload { seq_len, batch, decode_steps, .. } = workload;
        let facts = Facts::new().with("tokens", *seq_len).with("batch", *batch).with("steps", *decode_steps);
        Remark::new("workload.program", facts)
    });
    Some(TracedWorkload { workload, evidence: evidence.into_iter().collect(), missing })
}

/// Whether two inputs are the same to the model.
fn alike(one: &Workload, other: &Workload) -> bool {
    let unnamed = |workload: &Workload| Workload {
        profile_id: String::new(),
        description: String::new(),
        doc_kind: one.doc_kind,
        ..workload.clone()
    };
    unnamed(one) == unnamed(other)
}

fn differing(one: &Workload, other: &Workload) -> Remark {
    let facts = Facts::new()
        .with("one", &one.profile_id)
        .with("one_tokens", one.seq_len)
        .with("one_steps", one.decode_steps)
        .with("other", &other.profile_id)
        .with("other_tokens", other.seq_len)
        .with("other_steps", other.decode_steps);
    Remark::new("workload.inputs-differ", facts)
}

#[cfg(test)]
mod tests {
    use report::words::Spoken;
    use types::{AttentionKind, DType, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind};

    use super::*;

    fn workload(name: &str, seq_len: u64) -> Workload {
        Workload {
            profile_id: name.to_owned(),
            description: format!("as measured on {name}"),
            doc_kind: PageKind::Unknown,
            num_pages: 0,
            batch: 1,
            image: None,
            text_tokens: seq_len,
            seq_len,
            max_new_tokens: 8,
            decode_steps: 7,
            dtype: DType::Bf16,
            attention: AttentionKind::Eager,
            logits: LogitsKind::All,
            routing: RoutingKind::Balanced,
            quantisation: Quantisation::default(),
            parallel: Parallel::default(),
        }
    }

    #[test]
    fn inputs_are_alike_whatever_they_are_called() {
        assert!(alike(&workload("one", 512), &workload("two", 512)));
        assert!(!alike(&workload("one", 512), &workload("two", 513)));
        let text = differing(&workload("one", 512), &workload("two", 513)).spoken().text;
        assert!(text.contains("one (512 tokens, 7 decode steps) and two (513 tokens"), "{text}");
    }
}
