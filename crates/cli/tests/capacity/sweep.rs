//! Forecasts of several servers at once.

use super::*;

#[test]
fn layouts_under_different_loads_have_no_best_one_and_a_ramp_is_sized_by_its_peak() {
    let scratch = Scratch::new();
    let slo = ["--requests", "100", "--input", "256", "--output", "32", "--slo", "ttft=2s,tpot=30ms"];
    let rates = document(&scratch, &[&slo[..], &["--sweep", "rate=5,10"]].concat());
    assert!(rates["best"].is_null());
    let ramp = document(&scratch, &[&slo[..], &["--rate", "10..400", "--sweep", "max-num-seqs=64,128"]].concat());
    for point in ramp["points"].as_array().unwrap() {
        let highest = value(point, "/figures/highest/requests_per_second/low");
        assert_eq!(value(point, "/figures/servers_needed"), (400.0 / highest).ceil());
    }
    assert!(ramp["best"].is_u64());
}

#[test]
fn servers_that_share_a_load_are_axes_of_a_sweep() {
    let scratch = Scratch::new();
    let load = ["--rate", "40", "--requests", "120", "--input", "512", "--output", "32", "--slo", "ttft=1s,tpot=40ms"];
    let swept =
        document(&scratch, &[&load[..], &["--sweep", "data-parallel=1,2", "--sweep", "max-num-seqs=4"]].concat());
    let point = |swept: &Value, place: usize| swept["points"][place]["figures"].clone();
    let (one, two) = (point(&swept, 0), point(&swept, 1));
    assert_eq!(
        (value(&one, "/server/devices"), value(&two, "/server/devices"), value(&two, "/server/servers")),
        (1.0, 2.0, 2.0)
    );
    // Two servers with four sequences each hold about twice the rate.
    let highest = |figures: &Value| value(figures, "/highest/requests_per_second/value");
    let ratio = highest(&two) / highest(&one);
    assert!((1.7..2.5).contains(&ratio), "{ratio}");
    assert!(value(&two, "/queue_ms/mean/value") < value(&one, "/queue_ms/mean/value"));
    let arguments = ["--sweep", "disaggregate=none,1p1d,1p2d", "--kv-link", "50GB/s", "--router", "least-loaded"];
    let swept = document(&scratch, &[&load[..], &arguments].concat());
    let (none, apart) = (point(&swept, 0), point(&swept, 2));
    assert_eq!((value(&none, "/server/devices"), value(&apart, "/server/devices")), (1.0, 3.0));
    // 32 layers of 8 heads of 128 keys and values in 16 bits.
    assert_eq!(value(&apart, "/server/decoding/bytes_per_token"), 131_072.0);
    assert!(value(&apart, "/itl_ms/p99/value") < value(&none, "/itl_ms/p99/value"));
    assert!(apart["assumptions"].as_array().unwrap().contains(&"kv_transfer".into()));
    let refused: [(&[&str], &str); 7] = [
        (&["--disaggregate", "1p1d"], "needs the bandwidth between its servers"),
        (&["--disaggregate", "1x1"], "expected 1p2d"),
        (&["--disaggregate", "1p1d", "--data-parallel", "2"], "cannot be used with"),
        (&["--data-parallel", "0"], "expected a number from 1 to 256"),
        (&["--data-parallel", "256", "--requests", "50000"], "50000 requests on 256 servers are too many to simulate"),
        (&["--kv-link", "5"], "--kv-link has no effect without --disaggregate"),
        (&["--router", "round-robin"], "--router has no effect without"),
    ];
    for (arguments, cause) in refused {
        let output = capacity(&scratch, &[&["--model", "llama-3-8b"], arguments].concat());
        assert!(output.code == 2 && output.stderr.contains(cause), "{arguments:?}: {}", output.stderr);
    }
    let text = capacity(
        &scratch,
        &["--model", "llama-3-8b", "--disaggregate", "1p2d", "--kv-link", "50GB/s", "--requests", "20"],
    );
    for line in ["requests waiting on a server", "KV cache of a server"] {
        assert!(text.stdout.contains(line), "{line}: {}", text.stdout);
    }
    let two = document(&scratch, &["--data-parallel", "2", "--rate", "40", "--requests", "40"]);
    let times: Vec<f64> = two["over_time"].as_array().unwrap().iter().map(|moment| value(moment, "/at_ms")).collect();
    assert!(times.len() > 100 && times.is_sorted() && two["origin"] == "assumed", "{}", times.len());
    assert!(
        text.stdout.contains("vllm on 3 x h200; 1 prefill, 2 decode, round-robin, each: at most"),
        "{}",
        text.stdout
    );
}

#[test]
fn layouts_have_a_frontier_and_a_best_one_for_the_rate() {
    let scratch = Scratch::new();
    let axes = ["--sweep", "workload.parallel.tensor=1,2", "--sweep", "max-num-seqs=4,128"];
    let load = ["--rate", "40", "--requests", "150", "--input", "256", "--output", "32"];
    let found = document(&scratch, &[&axes[..], &load, &["--slo", "ttft=2s,tpot=30ms", "--price", "2/h"]].concat());
    let points = found["points"].as_array().unwrap();
    assert_eq!((points.len(), points[2]["settings"]["workload.parallel.tensor"].as_u64()), (4, Some(2)));
    let place = |point: &Value| {
        let of = |side: &str| value(point, &format!("/figures/tokens_per_second_per_{side}/value"));
        [of("user"), of("device")]
    };
    for point in points {
        let own = place(point);
        let beaten = points.iter().map(place).any(|other| other[0] >= own[0] && other[1] >= own[1] && other != own);
        assert_eq!(point["on_frontier"], !beaten, "{point}");
        let (highest, servers) =
            (value(point, "/figures/highest/requests_per_second/low"), value(point, "/figures/servers_needed"));
        assert_eq!(servers, (40.0 / highest).ceil());
    }
    // Four at a time hold a lower rate than a hundred, and the best layout needs the fewest devices.
    let highest = |at: usize| value(&points[at], "/figures/highest/requests_per_second/value");
    assert!(highest(0) < highest(1) && highest(2) < highest(3));
    let devices = |point: &Value| value(point, "/figures/devices_needed");
    let best = &points[found["best"].as_u64().unwrap() as usize];
    assert!(points.iter().all(|point| devices(best) <= devices(point)));
}

#[test]
fn a_sweep_leaves_a_page_a_chart_and_a_document_that_validates() {
    let scratch = Scratch::new();
    let load = ["--model", "qwen3-32b", "--requests", "20", "--output", "8", "--out", "run"];
    let output = capacity(
        &scratch,
        &[&load[..], &["--sweep", "concurrency=1,8", "--sweep", "hardware=a100-pcie-40gb,h200"]].concat(),
    );
    // One 40 GB device is too small: said, and the rest is done.
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(
        output.stderr.contains("2 of 4 layouts could not be simulated: qwen3-32b does not fit a100-pcie-40gb"),
        "{}",
        output.stderr
    );
    let file = scratch.path("run").join("capacity-sweep.json");
    let valid = Output::of(scratch.command(&["validate", file.to_str().unwrap()]));
    assert_eq!(valid.code, 0, "{}", valid.stdout);
    let (page, chart) = (scratch.text("run", "capacity-sweep.md"), scratch.text("run", "capacity-sweep.svg"));
    assert!(page.contains("capacity-sweep.svg") && page.contains("does not fit"), "{page}");
    assert_eq!(chart.matches("<circle").count(), 2);
    for (sweep, cause) in [
        ("turbo=1,2", "--sweep turbo: no such setting"),
        ("max-num-seqs=0", "expected a number from 1 to 1048576"),
        ("block-size=70000", "expected a number from 1 to 65536"),
        ("max-num-seqs", "has no values"),
        ("workload.seq_len=1,2", "has no effect"),
    ] {
        let output = capacity(&scratch, &["--model", "llama-3-8b", "--sweep", sweep]);
        assert_eq!(output.code, 2, "{sweep}: {}", output.stderr);
        assert!(output.stderr.contains(cause), "{sweep}: {}", output.stderr);
    }
}

#[test]
fn what_is_offered_in_place_of_a_server_that_is_too_small_fits() {
    let scratch = Scratch::new();
    for (model, device) in [("llama-3.1-70b", "a100-pcie-40gb"), ("qwen3-32b", "rtx-4090"), ("deepseek-v3", "h200")] {
        let refused = capacity(&scratch, &["--model", model, "--hardware", device]);
        assert_eq!(refused.code, 2, "{}", refused.stdout);
        assert!(refused.stderr.contains(&format!("{model} does not fit {device}")), "{}", refused.stderr);
        let hints: Vec<&str> = refused.stderr.lines().filter_map(|line| line.strip_prefix("hint: ")).collect();
        assert!(!hints.is_empty(), "{}", refused.stderr);
        for hint in hints {
            let last = hint.rsplit(' ').next().unwrap();
            let [device, more] = if last.contains('=') { [device, last] } else { [last, "workload.parallel.tensor=1"] };
            let small = ["--requests", "2", "--input", "16", "--output", "2", "--json"];
            let output = capacity(&scratch, &[&["--model", model, "--hardware", device, more], &small[..]].concat());
            assert_eq!(output.code, 0, "{model}, {hint}: {}", output.stderr);
        }
    }
}
