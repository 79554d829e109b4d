//! What each finding about ranks says: one row a rule. `{ranks}` and `{cost}` are those of the finding.

use super::rule_rows::RuleWords;

/// Every rule about ranks.
pub(crate) const FLEET_RULES: &[RuleWords] = &[
    RuleWords {
        rule: "straggling-rank",
        title: "Straggling rank",
        claim: &["Rank {ranks} holds up the other ranks by up to {cost}."],
        evidence: &[
            "It is the last to reach {last} of {met|collective}.",
            "Ranks in the same collectives wait {waited_for} for it on average, out of {span}.",
            "Clocks agree to within {clock_error}.",
            "?compute Its compute time is {extra} above the median of the other ranks ({usual}).",
            "?copies Its copy time is {extra} above the median of the other ranks ({usual}).",
            "Its GPU is idle {extra} longer than the median of the other ranks ({usual}): {idle_cause:idle}.",
        ],
        action: &[
            "?idle_cause Check the host of this rank: other jobs, CPU clocks and input data.",
            "Its kernels take {pace:2} times as long as on other ranks: check the clocks, power cap and temperature of its GPU.",
            "?more_work Its kernels are as fast as on other ranks, so it has more work: balance sequences, experts or layers.",
            "?extra Compare it with another rank: `llm-perf compare`.",
            "The tables do not show what takes longer on this rank: record it with CUDA calls and operators, and compare it with \
             another rank (`llm-perf compare`).",
        ],
        advice: &[],
    },
    RuleWords {
        rule: "slow-device",
        title: "Slow GPU",
        claim: &["The GPU of rank {ranks} is slower than the others and costs up to {cost}."],
        evidence: &[
            "Its kernels take {pace:2} times as long as the median of all ranks.",
            "Kernels that are slower here account for {slower_share}.",
        ],
        action: &[
            "Check the clocks, power cap and temperature of this GPU (`nvidia-smi -q -d PERFORMANCE`), and stop other jobs on it.",
        ],
        advice: &[],
    },
    RuleWords {
        rule: "slow-group",
        title: "Slow group",
        claim: &["Communication among ranks {ranks} is slower than in similar groups and costs up to {cost}."],
        evidence: &[
            "*transfers `{name}` of {bytes} takes {time} from the last arrival to the end ({calls|call}), and {usual} in \
             {groups|similar group}.",
        ],
        action: &[
            "A link between these ranks is slow: check its width and errors (`nvidia-smi nvlink -e`, `ibstat`), and the path NCCL \
             chose (`NCCL_DEBUG=INFO`).",
        ],
        advice: &[],
    },
    RuleWords {
        rule: "uneven-exchange",
        title: "Uneven exchange",
        claim: &["Rank {ranks} exchanges more data than the others."],
        evidence: &["Its messages in {calls|all-to-all} total {bytes}, {factor:2} times the mean of all ranks."],
        action: &[
            "Balance the exchanged data: tokens across experts (capacity, replicas of the busiest experts), or rows across \
             embedding tables.",
        ],
        advice: &[],
    },
    RuleWords {
        rule: "uneven-compute",
        title: "Uneven compute",
        claim: &["Rank {ranks} computes longer than the others and costs up to {cost}."],
        evidence: &["It computes for {compute}, the median rank for {usual}."],
        action: &["Give ranks equal work: sequences of equal length, experts and layers of equal cost."],
        advice: &[],
    },
];

/// The row of a rule.
pub(crate) fn words(rule: &str) -> Option<&'static RuleWords> {
    FLEET_RULES.iter().find(|row| row.rule == rule)
}
