//! The rows of rules about the requests of a server.

use super::rule_rows::RuleWords;

/// Every one, in the order of `docs/reference/metrics.md`, below those about what ran.
pub(crate) const RULES: &[RuleWords] = &[
    RuleWords {
        rule: "queueing",
        title: "Queueing",
        claim: &["Requests wait in the queue for {latency_share} beyond the way to the server, {time} in total."],
        evidence: &[
            "{requests} of {all|request} wait longer than a decode step takes; the longest wait is {longest}, the shortest {shortest}.",
            "Most of the time, steps meanwhile hold {full_sequences|sequence}, the most of the recording.",
            "Most of the time, steps meanwhile process {full_tokens|token}, the most of the recording.",
        ],
        action: &[
            "?full_sequences Allow more sequences per step, or add a replica.",
            "?full_tokens Allow more tokens per step, or add a replica.",
            "Add a replica, or send fewer requests at a time.",
        ],
        advice: &[
            "?full_sequences vLLM: `--max-num-seqs`; SGLang: `--max-running-requests`. More sequences need more KV cache and make each step longer.",
            "?full_tokens vLLM: `--max-num-batched-tokens`; SGLang: `--chunked-prefill-size`. Longer steps delay the tokens of requests that decode.",
            "The saving in latency depends on the load and is not estimated.",
        ],
    },
    RuleWords {
        rule: "preemption",
        title: "Preempted requests",
        claim: &[
            "The KV cache is full: {requests} of {all|request} lose their place in it. Queueing and processing again take {latency_share} ({time}).",
        ],
        evidence: &[
            "{times|preemption}; {tokens|token} processed again.",
            "Requests wait {queue} in the queue beyond the way to the server, and {again} to be processed again.",
        ],
        action: &["Give the KV cache more memory, or run fewer sequences at a time."],
        advice: &[
            "vLLM: raise `--gpu-memory-utilization`, lower `--max-num-seqs` or `--max-model-len`, or use an FP8 KV cache; SGLang: `--mem-fraction-static`.",
            "The saving in latency depends on the load and is not estimated.",
        ],
    },
    RuleWords {
        rule: "interrupted-decode",
        title: "Decode interrupted by prefill",
        claim: &["Decoding requests wait for the prompts of others for {latency_share} ({time} in total)."],
        evidence: &[
            "It concerns {requests} of {all|request} and {steps|step} with both prompts and decoding sequences.",
            "Such a step takes {mixed_step} (median), a step without prompts {decode_step}.",
            "The GPU is idle for {mixed_idle} of such a step.",
        ],
        action: &[
            "?mixed_idle Shorten the idle time within steps with prompts.",
            "?chunk Limit the tokens per step to about {chunk}.",
            "Limit the tokens per step.",
        ],
        advice: &[
            "?mixed_idle The GPU waits during such a step, so fewer tokens shorten it by less than their share. If launches are the reason, capture graphs for steps of this size (vLLM: `cudagraph_capture_sizes` of `--compilation-config`).",
            "!mixed_idle vLLM: `--max-num-batched-tokens`; SGLang: `--chunked-prefill-size`. Prompts then take more steps, so the time to first token grows.",
            "?chunk Prompt tokens of {chunk} take about as long as a decode step in this recording: the time between tokens would at most double. The figure is extrapolated from the prompts of this recording.",
            "Prefill on other GPUs (disaggregated serving) removes the interruptions.",
        ],
    },
    RuleWords {
        rule: "late-output",
        title: "Late output",
        claim: &[
            "Finished output reaches its client late: the way back takes {latency_share} beyond the shortest ({time} in total).",
        ],
        evidence: &["The shortest way back is {shortest}, the longest {longest}, over {all|request}."],
        action: &["Check the client and the server's HTTP process for a lack of CPU time."],
        advice: &[
            "The GPU has finished by then. A client that is short of CPU time reads late; so does a server that serves many streams from one process (vLLM: `--api-server-count`).",
        ],
    },
    RuleWords {
        rule: "idle-between-steps",
        title: "Idle between steps",
        claim: &[
            "Requests spend {latency_share} between the steps of the server, where the GPU is idle and waits for the host ({time} in total).",
        ],
        evidence: &[
            "The GPU is idle for {median} between two steps (median), {longest} at most; requests wait in {pauses|pause}.",
            "For {unseen} of the idle time of a GPU, the recording does not show what the host does.",
        ],
        action: &["Shorten what the engine does between two steps."],
        advice: &[
            "Scheduling, sampling parameters, grammars, detokenisation and logging run there. Sample the engine's process (`py-spy`), or record Python stacks, to see which. An engine that schedules a step ahead hides the part of this time that the GPU covers (vLLM: `--async-scheduling`; SGLang: unless `--disable-overlap-schedule` is given); most do so already.",
        ],
    },
];
