//! Every data-quality counter in words: one row a counter.

/// The words of a counter.
pub(crate) struct CounterWords {
    /// Its id, as in documents.
    pub(crate) counter: &'static str,
    /// What people call it, in the plural.
    pub(crate) title: &'static str,
    /// What it means and what to do: templates, of which all that can be said are joined.
    pub(crate) remedy: &'static [&'static str],
}

/// Every counter.
pub(crate) const COUNTERS: &[CounterWords] = &[
    CounterWords {
        counter: "busy_above_wall",
        title: "GPU busy times above wall time",
        remedy: &[
            "GPU busy time is left out where it exceeds the host's wall time: the host did not wait for the GPU.",
            "*parts {part}: busy {busy}, wall {wall}.",
        ],
    },
    // Traces of torch.profiler.
    CounterWords {
        counter: "trace_ends_early",
        title: "Bytes of an incomplete trace",
        remedy: &[
            "?in_events The event list is cut off at byte {offset}, so events are missing[[ ({cause})]].",
            "!in_events The file is cut off at byte {offset}, so fields after the event list may be missing[[ ({cause})]].",
            "Copy the file again, or record the trace again.",
        ],
    },
    CounterWords {
        counter: "trace_damaged",
        title: "Bytes of a damaged trace",
        remedy: &[
            "?in_events The event list is not valid JSON from byte {offset} on, so events are missing[[ ({cause})]].",
            "!in_events The fields after the event list are not valid JSON from byte {offset} on[[ ({cause})]].",
            "Copy the file again, or record the trace again.",
        ],
    },
    CounterWords {
        counter: "trace_followed_by_other_data",
        title: "Bytes after the end of a trace",
        remedy: &[
            "Data after the end of the document, from byte {offset} on, was ignored[[ ({cause})]].",
            "Copy the file again, or record the trace again.",
        ],
    },
    CounterWords {
        counter: "trace_elements_not_events",
        title: "Elements of the event list that are not events",
        remedy: &[
            "Elements of `traceEvents` that are not objects were skipped. Check which program wrote or edited the file.",
        ],
    },
    CounterWords {
        counter: "trace_events_unknown_phase",
        title: "Events with an unknown phase",
        remedy: &[
            "Events with a phase that torch.profiler does not write were skipped. Check which program wrote the file.",
        ],
    },
    CounterWords {
        counter: "trace_events_incomplete",
        title: "Incomplete events",
        remedy: &[
            "Events without a usable name, time, duration or device were skipped. Record again with a newer PyTorch.",
        ],
    },
    CounterWords {
        counter: "trace_events_out_of_range",
        title: "Events with impossible times",
        remedy: &["Events more than 73 years away from the clock's zero were skipped. Check the machine's clock."],
    },
    CounterWords {
        counter: "trace_events_negative_duration",
        title: "Events with a negative duration",
        remedy: &["Events that end before they start were skipped. Record again with a newer PyTorch."],
    },
    CounterWords {
        counter: "trace_signatures_unreadable",
        title: "Operators with unreadable shapes",
        remedy: &["These operators have no argument shapes, because their recorded shapes are not lists of integers."],
    },
    CounterWords {
        counter: "trace_header_unreadable",
        title: "Unreadable header fields",
        remedy: &["Header fields in an unknown format were skipped; devices or ranks may be missing."],
    },
    CounterWords {
        counter: "trace_events_unknown_category",
        title: "Events of unknown categories",
        remedy: &[
            "Events of categories that llm-perf does not know were skipped.",
            "*categories `{category}`: {events|event}.",
            "{more|more category}.",
        ],
    },
    CounterWords {
        counter: "trace_names_unreadable",
        title: "Names that are not UTF-8",
        remedy: &["Bytes that are not UTF-8 were replaced. Names that differ only in such bytes are treated as one."],
    },
    CounterWords {
        counter: "trace_work_of_unknown_process",
        title: "Kernels, copies and memsets of an unknown process",
        remedy: &[
            "Several processes in this file launch kernels, but the file does not say which process launched which kernel. Export one trace per process.",
        ],
    },
    // Exports of Nsight Systems.
    CounterWords {
        counter: "nsys_pages_missing",
        title: "Missing database pages",
        remedy: &["The file is incomplete. Copy or export it again."],
    },
    CounterWords {
        counter: "nsys_pages_damaged",
        title: "Damaged database pages",
        remedy: &["The file is damaged. Copy or export it again."],
    },
    CounterWords {
        counter: "nsys_rows_unreadable",
        title: "Unreadable database rows",
        remedy: &["The file is damaged. Copy or export it again."],
    },
    CounterWords {
        counter: "nsys_names_missing",
        title: "Missing names",
        remedy: &["Rows refer to names that are not in the file. Export it again."],
    },
    CounterWords {
        counter: "nsys_names_garbled",
        title: "Names that are not UTF-8",
        remedy: &["Bytes that are not UTF-8 were replaced. Use UTF-8 names in the profiled program."],
    },
    CounterWords {
        counter: "nvtx_domains_unnamed",
        title: "NVTX domains without a name",
        remedy: &[
            "These domains were created before recording started. Their ranges show the domain number instead of its name.",
        ],
    },
    CounterWords {
        counter: "nsys_errors_reported",
        title: "Errors reported by Nsight Systems",
        remedy: &[
            "Nsight Systems reported errors while recording. Open the report in Nsight Systems and read its diagnostics.",
        ],
    },
    CounterWords {
        counter: "nsys_stats_rows_unreadable",
        title: "Unreadable rows of `nsys stats`",
        remedy: &["Write the report again with `nsys stats --format csv`, and do not edit it."],
    },
    CounterWords {
        counter: "nsys_stats_rows_cut_off",
        title: "Truncated rows of `nsys stats`",
        remedy: &["The file ends in the middle of a row. Check that it is complete."],
    },
    CounterWords {
        counter: "nsys_stats_times_rounded",
        title: "Rounded times of `nsys stats`",
        remedy: &["Print times in nanoseconds (without `--timeunit`) to keep every digit."],
    },
    CounterWords {
        counter: "nsys_stats_tables_unused",
        title: "Unused tables of `nsys stats`",
        remedy: &["Only `cuda_gpu_kern_sum` is used. Import the SQLite export to use everything that was recorded."],
    },
    CounterWords {
        counter: "nsys_stats_rows_incomplete",
        title: "Incomplete rows of `nsys stats`",
        remedy: &["Rows without a shortest and a longest launch are left out. Print the table again with all columns."],
    },
    // Pages of Nsight Compute.
    CounterWords {
        counter: "ncu_rows_unreadable",
        title: "Unreadable rows of Nsight Compute",
        remedy: &["Write the page again with `ncu --import FILE --csv`, and do not edit it."],
    },
    CounterWords {
        counter: "ncu_rows_cut_off",
        title: "Truncated rows of Nsight Compute",
        remedy: &["The file ends in the middle of a row. Check that it is complete."],
    },
    CounterWords {
        counter: "ncu_numbers_with_decimal_comma",
        title: "Numbers with a decimal comma",
        remedy: &["The numbers use another locale and may be off by a factor of 1000. Run ncu with `LC_ALL=C`."],
    },
    CounterWords {
        counter: "ncu_numbers_impossible",
        title: "Impossible numbers of Nsight Compute",
        remedy: &[
            "Negative times and sizes, and shares of peak far above 100%, are left out. Profile again, and check that the page was not edited.",
        ],
    },
    CounterWords {
        counter: "ncu_lines_foreign",
        title: "Lines that are not part of a table",
        remedy: &[
            "Keep the program's output out of the file: use `--log-file`, or export from a report with `--import`.",
        ],
    },
    CounterWords {
        counter: "ncu_pages_differ",
        title: "Launches with different values on two pages",
        remedy: &[
            "`{file}` has different values for launches that an earlier page also has; the earlier values are kept. Import pages of a single report.",
        ],
    },
    CounterWords {
        counter: "ncu_pages_of_other_captures",
        title: "Launches of another capture",
        remedy: &[
            "`{file}` reuses the process and launch numbers of other kernels, so it is from another capture and its launches are counted in addition. Import one capture at a time.",
        ],
    },
    // The collector.
    CounterWords {
        counter: "collector_problem",
        title: "Collector problems",
        remedy: &[
            "?another_tool Another tool in the process was using CUPTI (torch.profiler, Nsight Systems, Nsight Compute or a debugger), so no kernels were recorded. Run without it.",
            "?cupti_not_found CUPTI was not found, so no kernels were recorded. Install the CUDA toolkit or the Python package `nvidia-cuda-cupti`, or pass the library with `--cupti`.",
            "{problem:capital}.",
            "{call} failed with CUPTI error {code:bare}; kernels may be missing.",
        ],
    },
    CounterWords {
        counter: "no_process_collected",
        title: "Commands without a recorded process",
        remedy: &[
            "No process of the command used CUDA or NVTX, or the collector library could not be loaded into it. Check the library with `llm-perf doctor`.",
        ],
    },
    CounterWords {
        counter: "collector_files_unfinished",
        title: "Unfinished collector files",
        remedy: &[
            "Processes were killed, crashed or exited without running exit handlers; up to the last 250 ms of their work is missing. Let the program exit normally, or lower `LLM_PERF_INJECT_FLUSH_MS`.",
        ],
    },
    CounterWords {
        counter: "collector_bytes_torn",
        title: "Bytes of truncated blocks",
        remedy: &[
            "A file ends in the middle of a block: it was truncated, or its process ended while writing. Everything before that block is used. Copy the file again, or record again.",
        ],
    },
    CounterWords {
        counter: "collector_bytes_damaged",
        title: "Damaged bytes",
        remedy: &["Damaged parts of a file were skipped. Copy the file again."],
    },
    CounterWords {
        counter: "collector_records_unknown",
        title: "Unknown records",
        remedy: &["Records of a newer collector or CUPTI were skipped. Update llm-perf."],
    },
    CounterWords {
        counter: "device_records_dropped",
        title: "Dropped GPU records",
        remedy: &["The process ran more kernels than could be written. Record a shorter part with `--window`."],
    },
    CounterWords {
        counter: "host_records_dropped",
        title: "Dropped CPU records",
        remedy: &["Threads made more calls and ranges than could be written. Record a shorter part with `--window`."],
    },
    CounterWords {
        counter: "threads_not_collected",
        title: "Threads that were not recorded",
        remedy: &[
            "More than 128 threads used CUDA or NVTX at the same time. Kernels launched by the other threads have no ranges.",
        ],
    },
    CounterWords {
        counter: "nvtx_names_dropped",
        title: "Dropped NVTX names",
        remedy: &["The program registered too many strings or domains, so some ranges have no name."],
    },
    CounterWords {
        counter: "collector_names_cut",
        title: "Truncated names",
        remedy: &["Names longer than 16 KiB are truncated."],
    },
    CounterWords {
        counter: "device_records_unfinished",
        title: "Kernels running when recording ended",
        remedy: &["These kernels were still running when the process or a window ended. Synchronise before that."],
    },
    CounterWords {
        counter: "device_times_invalid",
        title: "Kernels with invalid times",
        remedy: &[
            "CUPTI reported an end before the start, or an end without a start; these kernels are left out. Record a shorter part with `--window`, and report the CUPTI version.",
        ],
    },
    CounterWords {
        counter: "device_times_outside",
        title: "Kernels with times outside the recording",
        remedy: &[
            "CUPTI reported times before recording was switched on, or later than the records were fetched; these kernels are left out. Record a shorter part with `--window`.",
        ],
    },
    CounterWords {
        counter: "collector_bytes_unwritten",
        title: "Bytes that could not be written",
        remedy: &["The disk was full or not writable. Free some space and record again."],
    },
    CounterWords {
        counter: "launches_without_work",
        title: "Launches without a kernel",
        remedy: &[
            "The kernels of these launches are not in the file. If the process exited normally, another profiler may have taken the records: run without torch.profiler and Nsight tools in the same process.",
        ],
    },
    CounterWords {
        counter: "collector_names_missing",
        title: "Missing names",
        remedy: &["These names were in a part of the file that is lost."],
    },
    CounterWords {
        counter: "range_pops_missing",
        title: "Ranges without an end",
        remedy: &["These ranges have no recorded pop and end where the file ends."],
    },
    CounterWords {
        counter: "range_pushes_missing",
        title: "Range ends without a start",
        remedy: &["Their ranges started before recording did; they were skipped."],
    },
    CounterWords {
        counter: "collector_times_impossible",
        title: "Records with impossible times",
        remedy: &["These records were skipped. The file is damaged."],
    },
    CounterWords {
        counter: "wall_clock_set_ns",
        title: "Nanoseconds the wall clock was moved by",
        remedy: &["The wall clock was set during the run, so times across that moment are wrong. Record again."],
    },
    CounterWords {
        counter: "collection_windows",
        title: "Recording windows",
        remedy: &["Only these windows were recorded. Ranges count only the part inside them."],
    },
    CounterWords {
        counter: "work_outside_window",
        title: "Kernels launched outside the windows",
        remedy: &["They were recorded, but launched outside the windows, and were skipped."],
    },
    // Attribution.
    CounterWords {
        counter: "work_without_launch",
        title: "Kernels without a launch record",
        remedy: &[
            "{before} of them ran in the first {lead}, each before any kernel of its stream that has one: they were most likely launched before the recording.",
            "!calls Record the CUDA runtime calls too.",
            "?before Work launched before the profiler starts has no launch in the trace: wait for the device (`torch.cuda.synchronize()`) before you start it.",
        ],
    },
    CounterWords {
        counter: "launches_without_device_activity",
        title: "Launches without recorded kernels",
        remedy: &[
            "The host launched kernels, and the file contains none: device activity was not recorded. Record it too: `ProfilerActivity.CUDA` in torch.profiler, `--trace=cuda` in nsys. If it was on, CUPTI could not start: see the messages of the program.",
        ],
    },
    CounterWords {
        counter: "launches_cut_off",
        title: "Launches whose kernels are missing",
        remedy: &[
            "The recording ends before their kernels run, or their events were dropped or cut off: kernel times and the times of the steps that launched them are too short. Wait for the device (`torch.cuda.synchronize()`) before the profiler stops.",
        ],
    },
    CounterWords {
        counter: "work_with_ambiguous_launch",
        title: "Kernels with an ambiguous launch",
        remedy: &["Several processes use the same launch numbers. Import each process on its own."],
    },
    CounterWords {
        counter: "work_without_operator",
        title: "Kernels without an operator",
        remedy: &[
            "?launchless Their launches are not in the trace; see `work_without_launch`.",
            "!launchless They were launched outside any recorded operator: from Python, by a library, or by a thread that records none.",
        ],
    },
    CounterWords {
        counter: "work_without_stage",
        title: "Kernels outside stages",
        remedy: &[
            "?launchless Their launches are not in the trace; see `work_without_launch`.",
            "No stages were found: {reason}. Ranges around parts of the program would mark them.",
            "!launchless !reason They were launched outside every stage.",
        ],
    },
    CounterWords {
        counter: "work_with_inferred_stage",
        title: "Kernels with an inferred stage",
        remedy: &[
            "Stages are inferred from tokens that one pass chooses and the next looks up. NVTX ranges would mark them explicitly.",
        ],
    },
    CounterWords {
        counter: "ranges_open_at_end",
        title: "Ranges open at the end of the trace",
        remedy: &[
            "These ranges had not ended when the trace did and are cut off there. Stop the profiler after they close.",
        ],
    },
    CounterWords {
        counter: "ranges_crossing",
        title: "Overlapping ranges",
        remedy: &[
            "Ranges of one thread overlap without nesting. Work inside both counts for both and is shown under the range opened last.",
        ],
    },
    CounterWords {
        counter: "graph_launches_undivided",
        title: "CUDA graph launches without ranges",
        remedy: &[
            "The launch of a CUDA graph launches all its kernels, without an operator for each. No ranges were open while these graphs were captured, or the capture was not recorded. Put NVTX ranges around the layers in the captured code, and start recording before the capture.",
        ],
    },
    CounterWords {
        counter: "graph_kernels_with_captured_operator",
        title: "Graph kernels with operators from the capture",
        remedy: &["Operators and shapes of these kernels come from the graph's capture in `{file}`."],
    },
    CounterWords {
        counter: "graph_launches_sampled",
        title: "CUDA graph launches recorded kernel by kernel",
        remedy: &[
            "The other launches of these graphs count as one kernel each. Kernel rows hold what was recorded; `estimate` in `kernels[]` scales them to all launches.",
        ],
    },
    CounterWords {
        counter: "graphs_recorded_whole",
        title: "CUDA graphs recorded as one kernel",
        remedy: &["Each CUDA graph counts as one kernel here. Record its nodes (nsys: `--cuda-graph-trace=node`)."],
    },
    CounterWords {
        counter: "work_with_layer_by_order",
        title: "Kernels with a layer inferred from order",
        remedy: &[
            "Layers inside CUDA graphs are inferred from kernels that repeat once per layer. To confirm them, capture the graph with NVTX ranges around the layers and record it with llm-perf's collector.",
        ],
    },
    CounterWords {
        counter: "work_with_module_by_gemms",
        title: "Kernels with a module inferred from order",
        remedy: &[
            "Modules are inferred from GEMM kernels in the model's order. To confirm them, record NVTX ranges named after modules (`--module-ranges depth=N`) or operators with shapes.",
        ],
    },
    CounterWords {
        counter: "operators_unattributed",
        title: "Operators outside stages or modules",
        remedy: &[
            "They ran outside a stage or a module. They are in the operator tables, but not in the module tables.",
        ],
    },
    CounterWords {
        counter: "regions_left_out",
        title: "Regions left out",
        remedy: &[
            "Only the regions with the most kernel time are kept. Close every range, and do not number range names, to get fewer and less deeply nested regions.",
        ],
    },
    CounterWords {
        counter: "ranks_missing",
        title: "Missing ranks",
        remedy: &[
            "!tables Traces of {here} of {world|rank} are available. The other ranks are not analysed, and waiting for them cannot be distinguished from slow communication. Import their traces too.",
            "?tables Tables of {here} of {world|rank} are available. A missing rank may be the one the others wait for, so no straggler is reported. Import the missing traces with `--tables` too.",
        ],
    },
    CounterWords {
        counter: "records_lost",
        title: "Lost or unreadable records",
        remedy: &[
            "Traces of these ranks are incomplete or partly unreadable: {ranks:rank}. See the data quality of their imports.",
        ],
    },
    CounterWords {
        counter: "clocks_not_aligned",
        title: "Ranks with unaligned clocks",
        remedy: &[
            "?wall_clock Too few collectives of all ranks were recorded to align their clocks. The hosts' wall clocks are assumed to agree.",
            "!wall_clock The traces share no collective and no wall clock, so these ranks cannot be aligned.",
        ],
    },
    // Times, and what is modelled.
    CounterWords {
        counter: "nanoseconds_outside_stages",
        title: "Time outside stages",
        remedy: &[
            "{outside} of the measured time is outside every stage.",
            "{mixed_time} of that is in {mixed|step} with both prompts and decoding sequences, which belong to neither stage.",
            "?traced ?annotated !mixed That is what lies between the engine's steps, and where a step waits for work that is not in the recording.",
            "?traced !annotated This is expected where the trace includes loading or warm-up. Otherwise, add a range around the missing part.",
            "!traced No action is needed below 1%; above, work between the stages takes time that no stage shows.",
        ],
    },
    CounterWords {
        counter: "disturbed_inferences",
        title: "Disturbed inferences",
        remedy: &[
            "The machine was busy ({causes}), so times are longer and utilisation is lower than on an idle machine. Stop other jobs and run again.",
        ],
    },
    CounterWords {
        counter: "stages_without_utilisation",
        title: "Stages with unknown utilisation",
        remedy: &[
            "?no_model No model is named: pass `--model`.",
            "?several_ranks The split of the model across ranks is unknown: import a single rank.",
            "*reasons {reason:capital}.",
            "?unknown_device The device's peak rates are unknown: pass `--hardware` (`llm-perf hardware` lists known devices).",
            "?no_rate The device's peak rate for the data type of this run is unknown.",
        ],
    },
    CounterWords {
        counter: "stages_without_peak",
        title: "Stages without a peak rate",
        remedy: &[
            "!device The device's peak rates are unknown, and so are MFU and MBU. `llm-perf doctor --calibrate` measures this CPU; `llm-perf hardware` lists known devices.",
            "MFU and MBU are unknown: {device} has no matrix rate for {dtype}. `model.dtype=bfloat16` uses a data type with a known rate.",
        ],
    },
    CounterWords {
        counter: "stage_inputs_without_modelled_work",
        title: "Inputs without modelled work",
        remedy: &["MFU and MBU cover the other inputs only. `llm-perf models` lists the models that can be modelled."],
    },
    CounterWords {
        counter: "inputs_without_modelled_work",
        title: "Inputs without modelled work",
        remedy: &["MFU, MBU and roofline time are unknown: {reason}."],
    },
    CounterWords {
        counter: "model_does_not_fit",
        title: "Stages that contradict the model",
        remedy: &[
            "Utilisation is left out where the modelled work cannot have run in the measured time. Check `--model`, the workload, the number of devices that share it, and whether masked keys or logits were skipped.",
            "*parts {part}: roofline time {roofline}, measured {wall}.",
            "*parts {part}: MFU {mfu:bare}, GPU busy {busy}.",
        ],
    },
    CounterWords {
        counter: "model_differs_from_trace",
        title: "Contradictions between the model and the trace",
        remedy: &[
            "{model} is not the model in the trace, so nothing is compared with it. Name the model that ran.",
            "*reasons {reason:capital}.",
        ],
    },
    CounterWords {
        counter: "workload_differs_from_trace",
        title: "Differences between the workload and the trace",
        remedy: &[
            "Utilisation is computed with the workload that was named. Leave it out to use the workload of the trace.",
            "*differences {what}: {named} named, {shown} in the trace.",
        ],
    },
    CounterWords {
        counter: "hardware_differs_from_trace",
        title: "Differences between the device and the trace",
        remedy: &[
            "Utilisation is relative to the device that was named ({named}), but the trace was recorded on [[{recorded_on}]][[!recorded_on another device]]. Leave out `--hardware` to use the recorded device.",
        ],
    },
    CounterWords {
        counter: "modules_faster_than_modelled",
        title: "Modules faster than their roofline time",
        remedy: &[
            "Their lost time is unknown. Their data stayed in caches, which are faster than the memory bandwidth the roofline assumes, or the measured peak rates are too low.",
        ],
    },
    CounterWords {
        counter: "kernels_differ_from_table",
        title: "Kernels that differ from the kernel table",
        remedy: &["The kernel table is not from this timeline, or one of the two is incomplete. Export both again."],
    },
    CounterWords {
        counter: "driver_lines_not_understood",
        title: "Unknown lines in the driver's output",
        remedy: &["The model wrote to the channel that the driver uses. The lines are in `logs/torch-events.jsonl`."],
    },
    // Counters of kernels and regions.
    CounterWords {
        counter: "launches_of_child_processes",
        title: "Launches of child processes",
        remedy: &[
            "Nsight Compute needs about 0.1 s for every launch it skips in a child process. Pass the program that launches the kernels after `--`, not a script around it.",
        ],
    },
    CounterWords {
        counter: "counted_launches_not_chosen",
        title: "Profiled launches of other kernels",
        remedy: &[
            "Launches[[ in {part}]] that belong to none of the selected kernels were profiled. Their counters are in `ncu/`.",
        ],
    },
    CounterWords {
        counter: "chosen_kernels_not_counted",
        title: "Selected kernels without counters",
        remedy: &["No launch with the name, grid and block of these kernels[[ in {part}]] was profiled."],
    },
    CounterWords {
        counter: "region_metrics_not_counted",
        title: "Metrics without a value",
        remedy: &[
            "The captures have no value for {metrics:metric}: it was not collected, or the device or the replay mode does not provide it. `ncu --query-metrics` lists what a device provides.",
        ],
    },
    CounterWords {
        counter: "region_values_below_nested_ones",
        title: "Regions smaller than their nested regions",
        remedy: &[
            "Regions were measured in different runs, and nested regions came out larger than the region around them. Their exclusive values are left out. Use `--replay-mode kernel` to get all values from one run.",
        ],
    },
];

/// What people call a counter; its id in words where it has no row.
pub(crate) fn title(counter: &str) -> String {
    let row = COUNTERS.iter().find(|row| row.counter == counter);
    row.map_or_else(|| counter.replace('_', " "), |row| row.title.to_owned())
}
