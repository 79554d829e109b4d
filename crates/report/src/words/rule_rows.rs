//! The rows of rules.

/// The words of a rule. Every text is a template, see [`super::template`].
pub(crate) struct RuleWords {
    /// Its id, as in documents.
    pub(crate) rule: &'static str,
    /// What people call it.
    pub(crate) title: &'static str,
    /// What it concludes, in one sentence: the first that can be said.
    pub(crate) claim: &'static [&'static str],
    /// The numbers behind it, one line each: all that can be said.
    pub(crate) evidence: &'static [&'static str],
    /// What to do, in one sentence: the first that can be said.
    pub(crate) action: &'static [&'static str],
    /// How, and what the estimate leaves out: all that can be said.
    pub(crate) advice: &'static [&'static str],
}

/// Rules about what ran, in the order of `docs/reference/metrics.md`.
pub(crate) const RULES: &[RuleWords] = &[
    RuleWords {
        rule: "utilisation-above-one",
        title: "Utilisation above 100%",
        claim: &[
            "?compute The modelled work exceeds the device's peak FLOP/s, so one of the numbers is wrong.",
            "The modelled memory traffic exceeds the device's peak bandwidth.",
        ],
        evidence: &[
            "*stages MFU of {where} would be {mfu:bare}: {work} of modelled work in {time} is {rate}.",
            "*stages MBU of {where} would be {mbu:bare}: {moved} of modelled traffic in {time} is {rate}.",
            "The peak is {peak}[[ in {dtype}]] ({source}).",
        ],
        action: &[
            "?compute Measure the peak again on a quiet machine.",
            "Ignore the MBU of this run: the data came from caches, or the measured bandwidth is too low.",
        ],
        advice: &[
            "?compute Run `llm-perf doctor --calibrate`, and check that the model ran in {dtype}. No device exceeds its peak: the peak is too low, the modelled work did not run, or the time misses a part.",
            "?traffic Weights or activations stayed in caches. MBU becomes meaningful with a model larger than the caches.",
        ],
    },
    RuleWords {
        rule: "cold-first-iteration",
        title: "Cold first iteration",
        claim: &["The first step takes {first}, {ratio} times the median of the other {others|step}."],
        evidence: &["The median of the other steps is {median}."],
        action: &["Warm up before measuring and before serving."],
        advice: &[
            "One step with the target shapes loads kernels, fills caches and compiles. The figures of this run include the cold step.",
        ],
    },
    RuleWords {
        rule: "slow-steps",
        title: "Slow steps",
        claim: &["{slow} of {steps|step} took at least {ratio} times the median of {median}."],
        evidence: &["*slowest `{name}`: {wall} of wall time, {device} of GPU time."],
        action: &["Compare the slow steps with their neighbours."],
        advice: &["If GPU time grew, the work differs or communication waited. If it did not, the host was late."],
    },
    RuleWords {
        rule: "compilation",
        title: "Compilation and first-use costs",
        claim: &[
            "The GPU is idle {idle} ({idle_share}) while the host compiles, captures graphs, loads modules, or makes a first call of this recording that takes 1 ms or more.",
        ],
        evidence: &["*places {time} of the idle time is inside `{name}`."],
        action: &["Warm up with the same shapes before the profiler starts."],
        advice: &[
            "No saving is estimated, because this usually happens once. If it recurs, shapes change (dynamic shapes, recompilation): fix or pad them.",
        ],
    },
    RuleWords {
        rule: "data-loading",
        title: "Data loading",
        claim: &[
            "?one_off The GPU is idle {idle} ({idle_share}) while the host waits in `enumerate(DataLoader)`; {once} of that is seen only once in this recording, such as the start of its workers.",
            "The GPU is idle {idle} ({idle_share}) while the host waits in `enumerate(DataLoader)`.",
        ],
        evidence: &[
            "!one_off {once} of the idle time is seen only once in this recording; no saving is expected from it.",
        ],
        action: &["Load the next batches in the background."],
        advice: &[
            "Use more worker processes (`num_workers`), `prefetch_factor`, `persistent_workers` and pinned memory with `non_blocking` copies, or move preprocessing off the critical path.",
        ],
    },
    RuleWords {
        rule: "host-work",
        title: "Host work",
        claim: &[
            "?one_off The GPU is idle {idle} ({idle_share}) while the host makes no CUDA or HIP call for 1 ms or more; {once} of that is seen only once in this recording.",
            "?works !unrecorded The GPU is idle {idle} ({idle_share}) while the host does other work and makes no CUDA or HIP call for 1 ms or more.",
            "?all_unrecorded The GPU is idle {idle} ({idle_share}) while the host makes no CUDA or HIP call for 1 ms or more; the recording does not show what the host does then.",
            "The GPU is idle {idle} ({idle_share}) while the host makes no CUDA or HIP call for 1 ms or more; for {unrecorded} of that, the recording does not show what the host does.",
            "The GPU is idle {idle} ({idle_share}) while the host makes no CUDA or HIP call for 1 ms or more.",
        ],
        evidence: &[
            "*places {time} of the idle time is inside `{name}`.",
            "?all_unrecorded The host may work, wait or sleep then, so no saving is estimated.",
            "!all_unrecorded Where the recording shows nothing ({unrecorded}), the host may work, wait or sleep, so no saving is estimated for that part.",
            "!one_off {once} of the idle time is seen only once in this recording; no saving is expected from it.",
        ],
        action: &[
            "?one_off Record more steps to see whether this recurs.",
            "?works Move host work off the launching thread, or overlap it with GPU work.",
            "Find out what the host does then: record Python stacks of all threads, or NVTX ranges around its parts.",
        ],
        advice: &[
            "?one_off Start the profiler after the set-up, so that the recording holds only what repeats.",
            "!one_off ?works Typical host work is Python code, pre- and post-processing, and CPU operators.",
            "!one_off !works If it is work, move it off the launching thread or overlap it with GPU work; if the host waits for input, nothing is lost here.",
        ],
    },
    RuleWords {
        rule: "straggling-rank",
        title: "Straggling rank",
        claim: &["Rank {rank:bare} reaches {last} of {collectives|collective} last, and the other ranks wait for it."],
        evidence: &[
            "All {ranks|rank} of this recording take part in these collectives.",
            "The other ranks wait {waited} inside the collectives ({waited_share}).",
            "The collectives end within {ends_within} of each other on all ranks, so the ranks' clocks are comparable.",
        ],
        action: &["Find out why rank {rank:bare} is late, and balance the work."],
        advice: &[
            "Compare its work before each collective with that of the other ranks: more data, longer sequences, more experts, a slower GPU, or input processing on the host. The wait is part of communication time; balancing saves that much at most.",
        ],
    },
    RuleWords {
        rule: "exposed-communication",
        title: "Exposed communication",
        claim: &[
            "?awaited Nothing hides {unhidden} of communication in {span}: no other kernel runs for {exposed} of it, and for {awaited} only kernels that started early behind it on its stream and wait for it.",
            "Communication is exposed for {exposed} of {span} ({exposed_share}): no other kernel runs at the same time.",
        ],
        evidence: &[
            "Communication takes {communication} in total.",
            "*kernels `{name}`[[ from `{operator}`]]: {calls|call}, {time}.",
            "*collectives `{name}`[[ of {bytes}]][[!bytes  of unknown size]][[ among {ranks|rank}]][[!ranks  among an unknown number of ranks]]: {calls|call}, {time}[[; bus bandwidth {bus}, {bus_best} in the shortest call]][[, {link_share:bare} of the {link} that a GPU's links carry one way]].",
            "{above_shortest} of it exceeds the shortest call of each message: ranks wait for each other, or share links and multiprocessors.",
        ],
        action: &["Overlap communication with compute, or send less."],
        advice: &[
            "?training ?buckets `DistributedDataParallel` already reduces gradients in buckets during the backward pass: use larger buckets (`bucket_cap_mb`), a communication hook that sends half precision (`bf16_compress_hook`), or fewer synchronisations (`no_sync` while gradients accumulate).",
            "?training ?shards `FullyShardedDataParallel` already gathers parameters ahead: prefetch earlier (`forward_prefetch`, `backward_prefetch`), send half precision, or shard over fewer GPUs (hybrid sharding).",
            "?training ?other Start these collectives earlier and wait for them later, or use lower precision and fewer, larger messages.",
            "?training !buckets !shards !other Start collectives earlier (gradient buckets in backward, prefetched all-gathers), or use lower precision and fewer, larger messages.",
            "?inference Keep two batches in flight, split the GEMM before a collective so that its parts overlap, fuse the all-reduce with the norm that follows, or spread the model over fewer GPUs.",
            "!training !inference Start collectives earlier, keep two batches in flight, or use lower precision and fewer, larger messages.",
            "A collective also waits for the slowest rank: compare ranks before blaming the link.",
        ],
    },
    RuleWords {
        rule: "run-to-run-variation",
        title: "Run-to-run variation",
        claim: &[
            "Repeats of {where} vary by more than {limit} for {varying} of {inputs|input}.",
            "Repeats of {where} vary by {spread}.",
        ],
        evidence: &[
            "The widest is `{input}`: {runs|run} from {shortest} to {longest}, median {median}, standard deviation {spread} of the median.",
            "!input {runs|run} from {shortest} to {longest}, median {median}, standard deviation {spread} of the median.",
            "The first run is {first_slower} slower than the others.",
            "The last epoch is {drift} slower than the first.",
            "Half of the runs are within {calm} of the median.",
            "Other work on the machine disturbed {disturbed} of {inferences|inference}.",
        ],
        action: &[
            "?first_slower ?warmup_rounds Add warm-up rounds (now {warmup_rounds}) and measure again.",
            "?first_slower Warm up before measuring.",
            "?drift Let the machine cool down or lock its clocks, and measure again.",
            "?calm Add repeats on a quiet machine, and rely on the median.",
            "?short Generate more tokens or use larger inputs, and add repeats.",
            "?disturbed Stop other jobs and measure again.",
            "Stop other jobs, lock the clocks, add repeats and measure again.",
        ],
        advice: &[
            "?first_slower The first run still warms up caches and memory.",
            "?first_slower !warmup_rounds In a trace, a range named `warmup` excludes such runs.",
            "?drift The machine slows down while it runs; until then, compare medians of the first epoch only.",
            "?calm Most runs agree and a few stand out: the median is sound, the mean and the maximum are not. More repeats show whether the program is the cause.",
            "?short The stage is so short that a single interruption by the operating system is visible.",
            "?unexplained !disturbed The runs differ throughout, and the recording does not show why.",
            "?unexplained ?disturbed The runs differ throughout. The disturbance explains part of it at least; lock the clocks and add repeats if the variation remains.",
        ],
    },
    RuleWords {
        rule: "vision-dominates-prefill",
        title: "Vision dominates prefill",
        claim: &["The vision encoder takes {vision_share} ({vision} of {prefill})."],
        evidence: &[
            "Its largest part is {encoder} ({encoder_time}).",
            "{tiled|page} with tiles: up to {most_tiles|tile}, median vision time {tiled_time}.",
            "{untiled|page} without tiles: median vision time {untiled_time}.",
        ],
        action: &[
            "?comparable Run pages without tiles where the text stays readable.",
            "?tiled Use fewer tiles where the text stays readable.",
            "Use a smaller global view or a faster encoder.",
        ],
        advice: &[
            "?comparable The estimate covers all pages with tiles.",
            "?tiled !comparable Vision time falls roughly in proportion to the tiles; this run has no page without tiles to measure the saving.",
            "?tiled Cache the encoding of pages that recur.",
            "!tiled No page ran with tiles. Check first that the text stays readable.",
        ],
    },
    RuleWords {
        rule: "logits-of-all-positions",
        title: "Logits of all positions",
        claim: &["Prefill computes logits for {positions|position}, but uses only one per prompt."],
        evidence: &[
            "?own_engine `{module}` takes {head} of {profiled} in the profiled pass ({head_share}).",
            "!own_engine `{module}` takes {head_share}.",
            "One position takes {one_position} in decode.",
        ],
        action: &[
            "?own_engine Compute logits for the last position only (`logits=last`).",
            "Compute logits for the last position only.",
        ],
        advice: &[
            "The output stays the same, and prefill becomes {saved_share:bare} shorter.",
            "!one_position The estimate assumes that the time is proportional to the number of positions.",
        ],
    },
    RuleWords {
        rule: "launch-bound",
        title: "Launch-bound",
        claim: &["The GPU is idle {idle_share} ({idle} of {wall}) because the CPU launches kernels too slowly."],
        evidence: &[
            "The GPU is busy {busy_share}.",
            "?unit {launches|launch} per {unit}, one every {interval} on average.",
            "!unit {launches|launch}, one every {interval} on average.",
            "{graph_share:bare} of kernels, copies and memsets run in CUDA graphs ({graphs|graph launch}); the rest takes {eager|launch}.",
            "One token takes {token}; its roofline time is {token_roofline} (modelled).",
        ],
        action: &[
            "?graphs Capture more of the step in CUDA graphs, or give each remaining launch more work.",
            "?repeats Capture the step in a CUDA graph.",
            "Capture what runs again with the same shapes in a CUDA graph, or give each launch more work.",
        ],
        advice: &[
            "?graphs Steps above the largest captured size run without graphs, and piecewise graphs leave attention out: capture larger sizes, or full graphs if the kernels support it; otherwise fuse the small kernels.",
            "?repeats !graphs ?training Use `torch.compile(mode=\"reduce-overhead\")` or `torch.cuda.make_graphed_callables`; then fuse the remaining small kernels.",
            "?repeats !graphs !training Use `torch.compile(mode=\"reduce-overhead\")`, `torch.cuda.graph`, or a serving engine that captures graphs; then fuse the remaining small kernels.",
            "!repeats !graphs A larger batch or fused operators give each launch more work.",
            "?server !graphs Serving engines capture graphs unless an option forbids it (vLLM: `--enforce-eager`; SGLang: `--disable-cuda-graph`).",
            "A faster CPU helps in proportion; a faster GPU does not help. Profilers slow the CPU down, so check the figure without one.",
        ],
    },
    RuleWords {
        rule: "host-synchronisation",
        title: "Host synchronisation",
        claim: &[
            "The GPU is idle {idle} ({idle_share}) because the host stops to wait for it before it launches more work.",
        ],
        evidence: &["*calls ?per_step `{call}`: {per_step|call} per step.", "*calls !per_step `{call}`: {calls|call}."],
        action: &["Let the host run ahead of the GPU."],
        advice: &[
            "Keep the inputs of the next launch on the GPU, read results back every few steps, and avoid `.item()`, `.cpu()` and `nonzero` in between.",
        ],
    },
    RuleWords {
        rule: "memory-allocation",
        title: "Memory allocation",
        claim: &["The GPU is idle {idle} ({idle_share}) while the host allocates and frees GPU memory."],
        evidence: &[
            "{once} of the idle time is seen only once in this recording; no saving is expected from it.",
            "*calls `{call}`: {calls|call}.",
        ],
        action: &["Reuse GPU memory instead of freeing it."],
        advice: &[
            "Do not call `empty_cache()` between steps, and allocate buffers once. If PyTorch's allocator frees memory on its own (`num_alloc_retries` in `torch.cuda.memory_stats()`), lower the peak or set `expandable_segments:True`.",
        ],
    },
    RuleWords {
        rule: "host-to-device-copies",
        title: "Host-to-device copies",
        claim: &[
            "?per_step Decode steps copy data from the host to the GPU: {per_step|copy} per step on average.",
            "?one_off Copies from the host run for {exposed} of {span} with no kernel alongside ({exposed_share}); {once} of that is seen only once in this recording, such as in a set-up.",
            "Copies from the host run for {exposed} of {span} with no kernel alongside ({exposed_share}).",
        ],
        evidence: &[
            "?per_step The copies move {moved} in total.",
            "The copies run for {run} and keep the GPU idle for another {wait}: {copies_share} together.",
            "*devices `{device}`: {copies|copy}, {moved} in {time} ({rate}); kernels run for {kernels}.",
            "{pageable} of the copy time is spent on pageable memory, which the driver copies in chunks.",
            "On one GPU, {alike|copy} have only {sizes} sizes among them, as the weights of equal layers do, and are more than the tensors of a batch: these look like weights.",
            "?mostly The copies take longer than all work that could hide them: overlap saves little; move fewer bytes or copy faster.",
            "!one_off {once} of the copy time is seen only once in this recording, such as in a set-up; no saving is expected from it.",
        ],
        action: &[
            "?per_step Keep the inputs of every decode step on the GPU.",
            "?one_off Start the profiler after the set-up, and record the part that repeats.",
            "Keep weights and other reused data on the GPU.",
        ],
        advice: &[
            "?per_step Keep positions, masks and the last token there, or compute them there. Where a copy is needed, pin its memory and start it one step ahead.",
            "!per_step !one_off Copy the rest from pinned memory with `non_blocking`, on a separate stream and one step ahead.",
            "?alike The estimate assumes that all of these copies can be avoided: that the weights fit in GPU memory.",
        ],
    },
    RuleWords {
        rule: "device-to-host-copies",
        title: "Device-to-host copies",
        claim: &[
            "?one_off Copies to the host run for {exposed} of {span} with no kernel alongside ({exposed_share}); {once} of that is seen only once in this recording.",
            "Copies to the host run for {exposed} of {span} with no kernel alongside ({exposed_share}).",
        ],
        evidence: &[
            "*devices `{device}`: {copies|copy}, {moved} in {time} ({rate}); kernels run for {kernels}.",
            "{pageable} of the copy time is spent on pageable memory, which the driver copies in chunks.",
            "?mostly The copies take longer than all work that could hide them: overlap saves little; move fewer bytes or copy faster.",
            "!one_off {once} of the copy time is seen only once in this recording, such as in a set-up; no saving is expected from it.",
        ],
        action: &["Fetch fewer results from the GPU, and less often."],
        advice: &[
            "Reduce, select or convert on the GPU, and fetch every few steps. Copy the rest to pinned memory with `non_blocking`, on a separate stream while the next step runs.",
        ],
    },
    RuleWords {
        rule: "device-to-device-copies",
        title: "Device-to-device copies",
        claim: &["Copies within GPU memory run for {run} ({run_share})."],
        evidence: &[
            "{exposed} of that runs with no kernel alongside.",
            "*devices `{device}`: {copies|copy}, {moved} in {time}, {each} each on average; memory traffic {rate}.",
        ],
        action: &["Write results directly where they are needed."],
        advice: &[
            "Find the source of the copies (`copy_`, `cat`, `clone`, `contiguous`; buffers of graphs and of collectives), and use preallocated outputs, views, and gradients that are views of their bucket.",
            "The estimate covers all copies with no kernel alongside.",
        ],
    },
    RuleWords {
        rule: "gradient-copies",
        title: "Copies of gradients",
        claim: &[
            "`DistributedDataParallel` copies gradients out of their buckets after reducing them: {copies|copy} in {time}, {part} of all kernels, copies and memsets.",
        ],
        evidence: &[],
        action: &["Let gradients be views of their buckets."],
        advice: &[
            "Set `gradient_as_bucket_view=True`. That saves these copies, the launches behind them, and the memory of the gradients.",
        ],
    },
    RuleWords {
        rule: "dequantisation",
        title: "Casts before GEMMs",
        claim: &[
            "?unknown Kernels cast tensors directly before GEMMs: they run for {run} ({run_share}). The types are not recorded.",
            "Quantised tensors are widened in GPU memory before the GEMMs that read them: these kernels run for {run} ({run_share}).",
        ],
        evidence: &[
            "They account for {kernels|launch} in {where}.",
            "*longest `{kernel}`[[ from `{operator}`]]: {calls|call}, {run}.",
        ],
        action: &[
            "?unknown Find out what is cast: quantised weights need not be.",
            "Use GEMM kernels that read quantised weights.",
        ],
        advice: &[
            "?unknown A PyTorch trace with `record_shapes=True` has the types. If weights are widened, use GEMM kernels that read them quantised; if inputs are converted, keep one dtype.",
            "!unknown Such kernels (Marlin, Machete, CUTLASS mixed-input GEMMs) dequantise in registers and read each weight once, at its narrow width. If memory allows, dequantise weights once when loading instead.",
            "!unknown The estimate assumes that the GEMMs take as long as now.",
        ],
    },
    RuleWords {
        rule: "unfused-elementwise",
        title: "Unfused elementwise kernels",
        claim: &[
            "{kernels|elementwise kernel} follow each other directly in {chains|chain} ({where}), which could be fused where each reads the result of the one before.",
        ],
        evidence: &[
            "Each chain has {per_chain|kernel} on average.",
            "Fused in groups of up to eight, all but the longest kernel of each group run for {run} ({run_share}).",
        ],
        action: &["Fuse the kernels of each chain."],
        advice: &["Use `torch.compile`, or fused operators where the framework has them."],
    },
    RuleWords {
        rule: "attention-not-flash",
        title: "Attention without FlashAttention",
        claim: &["Attention in {where} is not fused: the scores pass through GPU memory in {kernels|softmax kernel}."],
        evidence: &["The softmax kernels run for {run}: {run_share}, {busy_share}."],
        action: &["Compute attention in one fused kernel."],
        advice: &[
            "For example, set `attn_implementation=\"flash_attention_2\"` or `\"sdpa\"`.",
            "The estimate covers the softmax alone; a fused kernel also avoids scaling, masking and the memory traffic of the scores.",
        ],
    },
    RuleWords {
        rule: "small-expert-gemms",
        title: "Small expert GEMMs",
        claim: &["Each pass launches {launches|expert GEMM}; grouped GEMMs need {grouped|launch}."],
        evidence: &[
            "They are in {layers|layer} and take {each} each.",
            "They take {experts_share}, including {wait} of launch gaps.",
        ],
        action: &["Run all experts of a layer in one grouped GEMM."],
        advice: &[
            "Use a grouped GEMM or a fused MoE kernel.",
            "The estimate covers the launch gaps alone; larger GEMMs also run closer to peak.",
        ],
    },
    RuleWords {
        rule: "layout-copies",
        title: "Layout copies",
        claim: &[
            "!overlaps Kernels that only copy, concatenate or cast run for {time} ({run_share}).",
            "Kernels that only copy, concatenate or cast run for {time}; beside other kernels, that accounts for {run} of wall time ({run_share}).",
        ],
        evidence: &[
            "They account for {kernels|launch} in {where}.",
            "Most of the time is from `{operator}`: {operator_calls|call}, {operator_run}.",
        ],
        action: &["Keep one layout and one dtype from producer to consumer."],
        advice: &[
            "!convolutions Cast weights once, write into preallocated buffers (such as a KV cache) instead of concatenating, and avoid `contiguous` between operators that accept strides.",
            "?convolutions Keep tensors in the layout that the convolutions take (`channels_last` on most GPUs), cast weights once, and avoid `contiguous` between operators that accept strides.",
            "The estimate covers all of these copies; some may be needed.",
        ],
    },
    RuleWords {
        rule: "float32-gemms",
        title: "GEMMs in FP32",
        claim: &["GEMMs[[?convolutions  and convolutions]] in FP32 run for {single} in {where} ({single_share})."],
        evidence: &[
            "Those in half precision take {half}.",
            "!half None is known to run in half precision; those in FP32 take {wall_share}.",
            "The longest is `{kernel}`[[ from `{operator}`]]: {calls|call}.",
        ],
        action: &[
            "?fp16 Run them in FP16; this GPU has no matrix units for BF16.",
            "?unknown Run them in half precision.",
            "!fp16 !unknown Run them in BF16 or FP16.",
        ],
        advice: &[
            "Find the source of the FP32 inputs: a module kept in FP32, a cast, a constant, or a model that was never cast. Half precision moves half the bytes; the estimate is that half, and compute-bound GEMMs gain more on tensor cores.",
        ],
    },
    RuleWords {
        rule: "low-occupancy-gemms",
        title: "Low-occupancy GEMMs",
        claim: &[
            "{kernels|GEMM} in {where} launched fewer blocks than the GPU has multiprocessors ({multiprocessors}).",
        ],
        evidence: &[
            "They run for {run} ({run_share}).",
            "The longest is `{kernel}`: {calls|call}, at most {blocks|block}.",
        ],
        action: &["Give each GEMM more work."],
        advice: &[
            "!split_k Use a larger batch, fuse the QKV and gate/up projections, or use split-K kernels.",
            "?split_k Use a larger batch, or fuse the QKV and gate/up projections; the longest of these GEMMs is split-K already.",
            "The estimate assumes that idle multiprocessors would do as much work as busy ones.",
        ],
    },
    RuleWords {
        rule: "small-grids",
        title: "Small grids",
        claim: &[
            "{kernels|non-GEMM kernel} in {where} launched fewer blocks than the GPU has multiprocessors ({multiprocessors}); `{kernel}`, the longest, at most {blocks|block}.",
        ],
        evidence: &[
            "They run for {run} ({run_share}); with all multiprocessors busy they would take at most {idle} less.",
            "*longest `{kernel}`: {calls|call}, {run}, at most {blocks|block}.",
        ],
        action: &["Give these kernels more work at once."],
        advice: &[
            "?training Use a larger batch, several small tensors per call (`_foreach_`), or a fused kernel.",
            "!training Use a larger batch, a grouped or fused kernel, or one that divides its work among more blocks.",
        ],
    },
    RuleWords {
        rule: "padded-batches",
        title: "Padded batches",
        claim: &[
            "{steps} of {all|decode step} process more tokens than their batch has: the batch is padded to the size of a captured graph.",
        ],
        evidence: &[
            "The costliest case: {tokens|sequence} run as {size}, in {times|step}[[ of {step_time} (median)]].",
            "?smaller Steps of {smaller} take {smaller_time} (median).",
            "Without padding, decode steps would take at most {part:bare} less GPU time.",
        ],
        action: &["Capture a graph for {tokens|sequence}, or limit the batch to a size that was captured."],
        advice: &[
            "vLLM: `--compilation-config` with `cudagraph_capture_sizes`, or `--max-num-seqs`; SGLang: `--cuda-graph-bs`. Each captured size takes memory and start-up time.",
            "The number of tokens comes from kernels that launch one block per token.",
        ],
    },
    RuleWords {
        rule: "launch-gaps",
        title: "Launch gaps",
        claim: &[
            "?in_graphs The GPU is idle {idle} ({idle_share}) while the host prepares and launches CUDA graphs and the kernels outside them.",
            "The GPU is idle {idle} ({idle_share}) between kernel launches.",
        ],
        evidence: &[
            "{graph_share:bare} of kernels, copies and memsets already run in CUDA graphs ({graphs|graph launch}); the rest takes {eager|launch}.",
            "{inside_graphs} of the idle time is inside the calls that launch graphs.",
            "{before_graphs} of the idle time is before the first graph launch.",
            "?unit {launches|launch} per {unit}, one every {interval} on average.",
            "!unit {launches|launch}, one every {interval} on average.",
        ],
        action: &[
            "?in_graphs Take host work off the launching thread, or do it while the GPU runs.",
            "?repeats Capture the step in a CUDA graph, or give each launch more work.",
            "Capture what runs again with the same shapes in a CUDA graph, or give each launch more work.",
        ],
        advice: &[
            "?in_graphs ?serving Sampling, detokenisation and request handling need not run there. Schedule a step ahead if the engine does not do so already (vLLM: `--async-scheduling`; SGLang: unless `--disable-overlap-schedule` is given), and move the remaining launches into the graph.",
            "?in_graphs !serving Move the remaining launches into the graph.",
            "!in_graphs ?repeats `torch.compile(mode=\"reduce-overhead\")` captures graphs.",
            "!in_graphs A larger batch or fused operators give each launch more work.",
            "Profilers slow the CPU down, so check the figure without one.",
        ],
    },
    RuleWords {
        rule: "kernel-gaps",
        title: "Gaps between kernels",
        claim: &[
            "?graphs The GPU is idle {idle} ({idle_share}) between kernels of CUDA graphs.",
            "The GPU is idle {idle} ({idle_share}) between kernels that had already been launched[[, {in_graphs} of it inside CUDA graphs]].",
        ],
        evidence: &["There are {gaps|gap} of {mean} on average."],
        action: &["Launch fewer kernels that each do more."],
        advice: &[
            "No host work causes these gaps: the GPU takes this long from one kernel to the next. Fuse small kernels, or use programmatic dependent launch where the kernels support it.",
        ],
    },
    RuleWords {
        rule: "unexplained-delay",
        title: "Late starts without a recorded cause",
        claim: &[
            "The GPU is idle {idle} ({idle_share}) although its next work has been launched; the recording does not show what that work waits for.",
        ],
        evidence: &["*places {time} of the idle time is before `{name}`."],
        action: &["Find out what this work waits for."],
        advice: &[
            "It may wait for an event of another stream or process, for work that the recording does not hold, or for another program on the same GPU. No saving is estimated.",
        ],
    },
    RuleWords {
        rule: "memory-bound-decode",
        title: "Memory-bound decode",
        claim: &["Decode is memory-bound: it reaches {mbu} and {mfu}."],
        evidence: &[
            "Its arithmetic intensity is {intensity}; memory is {ratio} times as busy as the compute units.",
            "The batch size is {batch}.",
            "Its steps have {sequences|sequence} (median).",
        ],
        action: &["Decode more sequences at once."],
        advice: &[
            "The sequences of a batch share one read of the weights, so throughput grows with the batch until the compute units are as busy as memory. Quantised weights shorten each step.",
            "?batch This run has one batch size, so the saving is unknown.",
            "?sequences A server decodes more sequences at once when more requests are in flight: throughput per GPU grows, and each token takes somewhat longer.",
        ],
    },
    RuleWords {
        rule: "far-from-roofline",
        title: "Far from the roofline",
        claim: &["Neither compute nor memory limits {where}: it reaches {mfu} and {mbu}."],
        evidence: &[
            "The stage takes {run_share}.",
            "It has {operators|operator} of {mean} on average.",
            "The time between operators is {between_share}.",
        ],
        action: &["Fuse small operators and run more work per call."],
        advice: &[
            "Start with the operators that have the lowest rate for their time (`operators.md`); avoiding copies also helps. The gain depends on the change.",
        ],
    },
    RuleWords {
        rule: "top-operator",
        title: "One dominant operator",
        claim: &["`{operator}` takes {operator_share}, at {ratio} times its roofline time."],
        evidence: &[
            "Its {calls|call} in {where} take {time}; their roofline time is {roofline}.",
            "It runs at {rate}.",
        ],
        action: &["Speed up `{operator}`, the operator with the largest share of the time."],
        advice: &[
            "The estimate is the saving at roofline time and an upper bound.",
            "`operators.md` lists its shapes and shows the slow calls.",
        ],
    },
];
