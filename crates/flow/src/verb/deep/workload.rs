//! Which workload the passes of our own engines are of: they say so themselves.

use collect::run::RunFolder;
use types::{TracedWorkload, Workload};

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
        [] => (None, vec![ran.not_modelled.unwrap_or_else(|| "the program did not report its workload".to_owned())]),
        [first, others @ ..] => match others.iter().find(|other| !alike(first, other)) {
            Some(other) => (None, vec![differing(first, other)]),
            None => (Some(first.clone()), Vec::new()),
        },
    };
    let evidence = workload.as_ref().map(|workload| {
        let Workload { seq_len, batch, decode_steps, .. } = workload;
        format!("prompt of {seq_len} tokens, batch {batch}, {decode_steps} decode steps: as run by the program")
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

fn differing(one: &Workload, other: &Workload) -> String {
    let size = |workload: &Workload| format!("{} tokens and {} steps", workload.seq_len, workload.decode_steps);
    format!(
        "inputs of different sizes, such as {} ({}) and {} ({}), are more than one workload; choose one with --inputs",
        one.profile_id,
        size(one),
        other.profile_id,
        size(other)
    )
}

#[cfg(test)]
mod tests {
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
        let text = differing(&workload("one", 512), &workload("two", 513));
        assert!(text.contains("one (512 tokens and 7 steps) and two (513 tokens"), "{text}");
    }
}
