//! What a configuration composes to: the built-in groups, folders of one's own, overrides, typed reading.

use std::fs;

use config::{Composer, Config, ConfigError, Origin, Overrides};
use jiff::Zoned;
use jiff::civil::date;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};
use support::transcript;
use tempfile::TempDir;

mod support;

/// A quarter past noon on the second of January 2026.
fn moment() -> Zoned {
    date(2026, 1, 2).at(12, 15, 30, 0).to_zoned(TimeZone::UTC).expect("a time")
}

fn composer() -> Composer {
    Composer::new(None).expect("the built-in groups").with_now(moment())
}

fn try_compose(composer: &Composer, overrides: &[&str]) -> Result<Config, ConfigError> {
    composer.compose(&Overrides::typed(overrides)?)
}

fn compose(overrides: &[&str]) -> Config {
    try_compose(&composer(), overrides).unwrap_or_else(|error| panic!("{overrides:?}: {error}"))
}

/// The value at a key.
fn value(config: &Config, key: &str) -> Value {
    config.get(key).unwrap_or_else(|error| panic!("{key}: {error}"))
}

/// A folder with these files, and a composer over it. Its root replaces the built-in one.
fn world(files: &[(&str, &str)]) -> (TempDir, Composer) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    let composer = Composer::new(Some(folder.path())).expect("a readable folder").with_now(moment());
    (folder, composer)
}

/// The whole tree that these files compose to.
fn composed(files: &[(&str, &str)], overrides: &[&str]) -> Value {
    let (_folder, composer) = world(files);
    value(&try_compose(&composer, overrides).unwrap_or_else(|error| panic!("{error}")), "")
}

mod built_in {
    use super::*;

    #[test]
    fn the_default_configuration_is_what_it_was() {
        insta::assert_snapshot!("default", compose(&[]).to_yaml());
    }

    #[test]
    fn groups_are_mounted_where_the_design_says() {
        let config = compose(&[]);
        let mounts: Vec<(&str, &str)> =
            config.mounts().iter().map(|mount| (mount.package.as_str(), mount.group.as_str())).collect();
        assert_eq!(
            mounts,
            [
                ("model", "model/deepseek_ocr/arch"),
                ("infer", "model/deepseek_ocr/infer"),
                ("dataset", "dataset"),
                ("dataset.sampling", "dataset/sampling"),
                ("pipeline.torch_profiler", "profiling/torch"),
                ("pipeline.nsys", "profiling/nsys"),
                ("pipeline.ncu", "profiling/ncu"),
                ("workload", "workload"),
                ("", "runner"),
            ]
        );
    }

    #[test]
    fn every_option_of_every_group_composes() {
        let config = compose(&[]);
        let mut tried = 0;
        for group in composer().groups() {
            let mounted = config.mounts().iter().find(|mount| mount.group == group.name);
            let package = match (mounted, group.name.rsplit('/').next()) {
                (Some(mount), _) => mount.place(),
                (None, Some("infer")) => "infer",
                (None, _) => "model",
            };
            for (option, file) in &group.options {
                let chosen = compose(&[&format!("{}@{package}={option}", group.name)]);
                let text = chosen.to_yaml();
                assert_eq!(file, &format!("conf/{}/{option}.yaml", group.name));
                let explained = chosen.explain();
                assert!(
                    explained.iter().any(|one| matches!(&one.origin, Origin::File { file: from, .. } if from == file)),
                    "{file} gives no value"
                );
                assert!(!text.contains("${"), "{file} leaves an interpolation");
                tried += 1;
            }
        }
        assert_eq!(tried, 38);
    }

    #[test]
    fn options_of_one_group_hold_the_same_keys() {
        let keys = |config: &Config, package: &str| -> Vec<String> {
            let Value::Object(map) = value(config, package) else { panic!("{package} is a map") };
            map.keys().cloned().collect()
        };
        let mut compared = 0;
        for group in composer().groups() {
            let Some(mount) = compose(&[]).mounts().iter().find(|mount| mount.group == group.name).cloned() else {
                continue;
            };
            // Keys of a runner are at the root and differ: `profile` has none of `deep`.
            if mount.package.is_empty() {
                continue;
            }
            let first = keys(&compose(&[]), &mount.package);
            for (option, _) in &group.options {
                let chosen = compose(&[&format!("{}={option}", group.name)]);
                assert_eq!(keys(&chosen, &mount.package), first, "{}/{option}", group.name);
                compared += 1;
            }
        }
        assert!(compared >= 30, "only {compared} options");
    }

    #[test]
    fn every_ncu_preset_replays_kernels() {
        for option in ["default", "high", "light", "rtx3090", "rtx3090.compute", "rtx3090.memory"] {
            let config = compose(&[&format!("profiling/ncu=ncu.{option}")]);
            assert_eq!(value(&config, "pipeline.ncu.ncu_cli.replay_mode"), json!("kernel"), "{option}");
            assert_eq!(value(&config, "pipeline.ncu.ncu_cli.target_processes"), json!("all"), "{option}");
        }
    }

    #[test]
    fn the_dummy_model_takes_the_place_of_the_real_one() {
        let config = compose(&[
            "model/dummy_shallow_resnet/arch@model=dummy_shallow_resnet.default",
            "model/dummy_shallow_resnet/infer@infer=dummy_shallow_resnet.default",
        ]);
        assert_eq!(value(&config, "model.name"), json!("dummy-shallow-resnet"));
        assert_eq!(value(&config, "infer.iterations"), json!(4));
        assert!(config.root().at("infer.prompt").is_none(), "nothing of the other model is left");
        assert_eq!(config.mounts()[0].group, "model/dummy_shallow_resnet/arch");
    }

    #[test]
    fn overrides_of_the_seeds_work() {
        let config = compose(&[
            "pipeline.ncu.ncu_cli.replay_mode=range",
            "pipeline.ncu.ncu_cli.nvtx.include='decode*'",
            "pipeline.ncu.ncu_cli.kernel_name=regex:.*gemm.*",
            "pipeline.ncu.ncu_cli.sections=[SpeedOfLight, Occupancy]",
            "pipeline.ncu.ncu_cli.metrics=[gpu__time_duration.sum]",
            "+pipeline.ncu.ncu_cli.kernel_exclude.0=regex:elementwise",
            "runner=stage2",
            "+run.mode=light",
            "run.top_n_kernels=5",
            "+inputs.manifest=pages.txt",
            "hydra.run.dir=tmp/stage2/one",
            "hydra.job.chdir=false",
            "model/llm@model=alt",
            "+model.target=Qwen/Qwen2.5-1.5B",
        ]);
        assert_eq!(value(&config, "pipeline.ncu.ncu_cli.replay_mode"), json!("range"));
        assert_eq!(value(&config, "pipeline.ncu.ncu_cli.nvtx.include"), json!(["decode*"]));
        assert_eq!(value(&config, "pipeline.ncu.ncu_cli.kernel_exclude"), json!(["regex:elementwise"]));
        assert_eq!((value(&config, "run.mode"), value(&config, "run.top_n_kernels")), (json!("light"), json!(5)));
        assert_eq!(value(&config, "artifacts.stage2_dir"), json!("tmp/profile-output/20260102-121530"));
        assert_eq!(value(&config, "inputs.manifest"), json!("pages.txt"));
        assert_eq!(value(&config, "hydra"), json!({"run": {"dir": "tmp/stage2/one"}, "job": {"chdir": false}}));
        assert_eq!(value(&config, "model.name"), json!("qwen2.5-0.5b"));
        assert_eq!(value(&config, "model.target"), json!("Qwen/Qwen2.5-1.5B"));
    }

    #[test]
    fn the_standard_workload_is_the_one_of_the_requirements() {
        let workload = value(&compose(&[]), "workload");
        assert_eq!(workload["base_size"], 1024);
        assert_eq!(workload["image_size"], 640);
        assert_eq!(workload["crop_mode"], true);
        assert_eq!(workload["max_new_tokens"], 512);
        assert_eq!(workload["doc_kind"], "mixed_layout");
        assert_eq!(workload["num_pages"], 1);
        // (b+1)*b+1 for the global view with b = 1024/16/4 = 16, and (t*w+1)*(t*h) for tiles with t = 640/16/4 = 10.
        let image_tokens = 17 * 16 + 1 + (10 + 1) * (10 * 2);
        assert_eq!(image_tokens + workload["text_tokens"].as_i64().expect("a number"), 512);
    }
}

mod defaults {
    use super::*;

    #[test]
    fn a_file_without_self_wins_over_its_defaults() {
        let files = [("config.yaml", "defaults:\n  - a: one\na:\n  x: 10\n"), ("a/one.yaml", "x: 20\ny: 30\n")];
        assert_eq!(composed(&files, &[]), json!({"a": {"x": 10, "y": 30}}));
    }

    #[test]
    fn what_comes_after_self_wins_over_the_file() {
        let files =
            [("config.yaml", "defaults:\n  - _self_\n  - a: one\na:\n  x: 10\n"), ("a/one.yaml", "x: 20\ny: 30\n")];
        assert_eq!(composed(&files, &[]), json!({"a": {"x": 20, "y": 30}}));
    }

    #[test]
    fn defaults_of_defaults_are_relative_to_their_group_and_package() {
        let files = [
            ("config.yaml", "defaults:\n  - a@top: one\n"),
            (
                "a/one.yaml",
                "defaults:\n  - base\n  - b: two\n  - b@c: three\n  - /z: four\n  - /z@_global_.w: four\nx: 1\n",
            ),
            ("a/base.yaml", "x: 0\nfrom_base: true\n"),
            ("a/b/two.yaml", "n: 2\n"),
            ("a/b/three.yaml", "n: 3\n"),
            ("z/four.yaml", "n: 4\n"),
        ];
        assert_eq!(
            composed(&files, &[]),
            json!({"top": {"x": 1, "from_base": true, "b": {"n": 2}, "c": {"n": 3}}, "z": {"n": 4}, "w": {"n": 4}})
        );
        // A mount made by a file of a group can be changed like any other.
        assert_eq!(composed(&files, &["a/b@top.c=two", "~a/b@top.b"])["top"]["c"], json!({"n": 2}));
    }

    #[test]
    fn a_group_can_be_mounted_at_the_root() {
        let files = [("config.yaml", "defaults:\n  - site@_global_: here\nx: 1\n"), ("site/here.yaml", "y: 2\n")];
        assert_eq!(composed(&files, &[]), json!({"y": 2, "x": 1}));
    }

    #[test]
    fn an_optional_group_may_be_absent_and_an_empty_one_waits_for_a_choice() {
        let files = [
            ("config.yaml", "defaults:\n  - optional site: nowhere\n  - later: null\nx: 1\n"),
            ("later/now.yaml", "y: 2\n"),
        ];
        assert_eq!(composed(&files, &[]), json!({"x": 1}));
        assert_eq!(composed(&files, &["later=now"]), json!({"later": {"y": 2}, "x": 1}));
    }

    #[test]
    fn an_override_can_mount_replace_and_remove_groups() {
        let files = [
            ("config.yaml", "defaults:\n  - a: one\n"),
            ("a/one.yaml", "x: 1\n"),
            ("a/two.yaml", "x: 2\n"),
            ("b/three.yaml", "y: 3\n"),
        ];
        assert_eq!(composed(&files, &["a=two"]), json!({"a": {"x": 2}}));
        assert_eq!(composed(&files, &["a='two'"]), json!({"a": {"x": 2}}));
        assert_eq!(composed(&files, &["b@a=three"]), json!({"a": {"y": 3}}));
        assert_eq!(composed(&files, &["~a"]), json!({}));
        assert_eq!(composed(&files, &["~a@a"]), json!({}));
        assert_eq!(composed(&files, &["+b=three"]), json!({"a": {"x": 1}, "b": {"y": 3}}));
        assert_eq!(composed(&files, &["+b@a.inner=three"]), json!({"a": {"x": 1, "inner": {"y": 3}}}));
        assert_eq!(composed(&files, &["++b@a=three"]), json!({"a": {"y": 3}}));
        assert_eq!(composed(&files, &["~a", "+a=two"]), json!({"a": {"x": 2}}));
        assert_eq!(composed(&files, &["+b=three", "~b", "+a@b=two"]), json!({"a": {"x": 1}, "b": {"x": 2}}));
        assert_eq!(composed(&files, &["b@a=three", "b=three", "++a@c=two"]), json!({"a": {"y": 3}, "c": {"x": 2}}));
    }
}

mod values {
    use super::*;

    const ROOT: &str = "n: 1\nf: 1.5\nt: text\nb: true\nempty: null\nl: [1, 2]\nm: {x: 1, y: {z: 2}}\n";

    fn changed(overrides: &[&str], key: &str) -> Value {
        composed(&[("config.yaml", ROOT)], overrides).pointer(&format!("/{}", key.replace('.', "/"))).cloned().into()
    }

    #[test]
    fn values_change_and_keep_their_type() {
        assert_eq!(changed(&["n=2"], "n"), json!(2));
        assert_eq!(changed(&["f=2"], "f"), json!(2.0));
        assert_eq!(changed(&["t=123"], "t"), json!("123"));
        assert_eq!(changed(&["t=0x1F"], "t"), json!("0x1F"));
        assert_eq!(changed(&["t="], "t"), json!(""));
        assert_eq!(changed(&["t=null"], "t"), json!(null));
        assert_eq!(changed(&["empty=[1, a]"], "empty"), json!([1, "a"]));
        assert_eq!(changed(&["b=false"], "b"), json!(false));
        assert_eq!(changed(&["l=[3]"], "l"), json!([3]));
        assert_eq!(changed(&["l.1=5"], "l"), json!([1, 5]));
        assert_eq!(changed(&["m={y: {z: 3}}"], "m"), json!({"x": 1, "y": {"z": 3}}));
        assert_eq!(changed(&["n=2", "n=3"], "n"), json!(3), "the last one wins");
    }

    #[test]
    fn groups_are_chosen_before_values_change() {
        let config = compose(&["workload.batch=4", "workload=dsocr-base-1024"]);
        assert_eq!(value(&config, "workload.batch"), json!(4));
        assert_eq!(value(&config, "workload.profile_id"), json!("dsocr-base-1024"));
    }

    #[test]
    fn values_are_added_and_removed() {
        assert_eq!(changed(&["+a.b.c=1"], "a"), json!({"b": {"c": 1}}));
        assert_eq!(changed(&["+empty.x=1"], "empty"), json!({"x": 1}));
        assert_eq!(changed(&["+l.2=3"], "l"), json!([1, 2, 3]));
        assert_eq!(changed(&["++n=5"], "n"), json!(5));
        assert_eq!(changed(&["++m={w: 1}"], "m"), json!({"x": 1, "y": {"z": 2}, "w": 1}));
        assert_eq!(changed(&["~m.y"], "m"), json!({"x": 1}));
        assert_eq!(changed(&["~l.0"], "l"), json!([2]));
        assert_eq!(changed(&["~m", "+m=1"], "m"), json!(1), "what is gone has no type");
    }
}

mod interpolation {
    use super::*;

    fn resolved(root: &str) -> Value {
        composed(&[("config.yaml", root)], &[])
    }

    #[test]
    fn references_take_the_value_with_its_type() {
        let tree = resolved("a: 1\nb: ${a}\nc: ${m}\nm: {x: [1, '${a}'], y: null}\nd: ${m.x.1}\ne: ${m.y}\n");
        assert_eq!(tree["b"], json!(1));
        assert_eq!(tree["c"], json!({"x": [1, 1], "y": null}));
        assert_eq!(tree["d"], json!(1));
        assert_eq!(tree["e"], json!(null));
    }

    #[test]
    fn references_stand_inside_texts() {
        let tree = resolved("n: 1\nf: 2.0\nb: true\nt: '${n}/${f}-${b}'\n");
        assert_eq!(tree["t"], "1/2.0-true");
    }

    #[test]
    fn references_can_be_relative_nested_and_chained() {
        let tree = resolved(
            "which: two\nm:\n  one: 1\n  two: 2\n  here: ${.one}\n  deep: {up: '${..two}'}\npick: ${m.${which}}\nagain: ${pick}\nthrough: ${alias.one}\nalias: ${m}\n",
        );
        assert_eq!(tree["m"]["here"], json!(1));
        assert_eq!(tree["m"]["deep"]["up"], json!(2));
        assert_eq!(tree["again"], json!(2));
        assert_eq!(tree["through"], json!(1));
    }

    #[test]
    fn an_escaped_reference_is_left_as_text() {
        assert_eq!(resolved("a: '\\${b} costs $5'\n")["a"], "${b} costs $5");
    }

    #[test]
    fn now_is_one_moment() {
        let tree = resolved("a: ${now:%Y%m%d-%H%M%S}\nb: 'run ${now:%H:%M}'\n");
        assert_eq!(tree, json!({"a": "20260102-121530", "b": "run 12:15"}));
    }

    #[test]
    fn texts_that_double_with_every_reference_are_stopped() {
        let mut root = String::from("a0: xxxxxxxxxx\n");
        for level in 1..40 {
            root.push_str(&format!("a{level}: ${{a{0}}}${{a{0}}}\n", level - 1));
        }
        let (_folder, composer) = world(&[("config.yaml", &root)]);
        let error = try_compose(&composer, &[]).expect_err("too much");
        assert!(error.to_string().contains("more than 10000 references"), "{error}");
    }

    #[test]
    fn long_chains_are_stopped_before_the_stack_is_full() {
        let root: String = (0..5000).map(|level| format!("a{level}: ${{a{}}}\n", level + 1)).collect();
        let (_folder, composer) = world(&[("config.yaml", &root)]);
        let error = try_compose(&composer, &[]).expect_err("too long");
        assert_eq!(error.to_string(), "interpolations are nested more than 64 deep");
    }
}

mod typed {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Run {
        id: String,
        output_root: String,
    }

    #[derive(Debug, Deserialize)]
    struct Workload {
        #[serde(rename = "batch")]
        _batch: u32,
        #[serde(rename = "crop_grid")]
        _crop_grid: Option<[u8; 2]>,
    }

    fn refusal(overrides: &[&str], read: impl Fn(&Config) -> Option<ConfigError>) -> String {
        let error = read(&compose(overrides)).expect("refused");
        format!("{error}\n{}", error.span().map(|span| span.excerpt()).unwrap_or_default())
    }

    #[test]
    fn a_subtree_is_read_into_a_type() {
        let run: Run = compose(&[]).get("run").expect("fits");
        assert_eq!((run.id.as_str(), run.output_root.as_str()), ("20260102-121530", "tmp/profile-output"));
        assert_eq!(compose(&["device=cuda:0"]).get::<String>("device").expect("fits"), "cuda:0");
    }

    #[test]
    fn a_value_that_does_not_fit_is_shown_where_it_was_written() {
        insta::assert_snapshot!(refusal(&["workload.crop_grid=[1, 999]"], |config| config.get::<Workload>("workload").err()), @r"
        `workload.crop_grid.1`: invalid value: integer `999`, expected u8
         --> command line
          |
          | workload.crop_grid=[1, 999]
          |                        ^^^
        ");
        insta::assert_snapshot!(refusal(&["workload.batch=null"], |config| config.get::<Workload>("workload").err()), @r"
        `workload.batch`: invalid type: null, expected u32
         --> command line
          |
          | workload.batch=null
          |                ^^^^
        ");
    }

    #[test]
    fn an_unknown_field_is_shown_where_it_was_written() {
        insta::assert_snapshot!(refusal(&["+run.name=x"], |config| config.get::<Run>("run").err()), @r"
        `run.name`: unknown field `name`, expected `id` or `output_root`
         --> command line
          |
          | +run.name=x
          |  ^^^^^^^^
        ");
    }

    #[test]
    fn a_missing_field_points_at_its_map() {
        insta::assert_snapshot!(refusal(&["~runner", "~run.id"], |config| config.get::<Run>("run").err()), @r"
        `run`: missing field `id`
          --> conf/config.yaml:15:1
           |
        15 | run:
           | ^^^
        ");
    }

    #[test]
    fn a_missing_key_says_so() {
        insta::assert_snapshot!(refusal(&["~workload"], |config| config.get::<Workload>("workload").err()), @"the configuration has no `workload`");
    }
}

mod program {
    use super::*;

    #[test]
    fn yaml_and_json_say_the_same() {
        let json = transcript(&["config", "--json", "run.id=x"]);
        let (_, json) = json.split_once("stdout -----\n").expect("stdout");
        let (json, _) = json.split_once("----- stderr").expect("stderr");
        let printed: Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(printed, value(&compose(&["run.id=x"]), ""));
    }

    #[test]
    fn explain_shows_files_overrides_and_interpolations() {
        let shown =
            transcript(&["config", "--explain", "workload.batch=4", "run.id=x", "++model.notes=a ${workload.batch}"]);
        let wanted = ["model.name", "model.notes", "workload.batch", "run.", "artifacts"];
        let lines: Vec<&str> =
            shown.lines().filter(|line| wanted.iter().any(|start| line.starts_with(start))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        model.name: deepseek-ocr                                    # conf/model/deepseek_ocr/arch/deepseek_ocr.default.yaml:2
        model.notes: a 4                                            # override '++model.notes=a ${workload.batch}'
        workload.batch: 4                                           # override 'workload.batch=4'
        artifacts.stage1_dir: tmp/profile-output/x                  # conf/runner/stage1.yaml:3  ${run.output_root}/${run.id}
        run.id: x                                                   # override 'run.id=x'
        run.output_root: tmp/profile-output                         # conf/config.yaml:17
        ");
    }

    #[test]
    fn explain_as_json_names_origins() {
        let (_folder, composer) = world(&[("config.yaml", "a: 1\nb: ${a}\n")]);
        let mut explained =
            serde_json::to_value(try_compose(&composer, &["a=2"]).expect("composes").explain()).expect("JSON");
        for one in explained.as_array_mut().expect("a list") {
            if one.get("file").is_some() {
                one["file"] = json!("FILE");
            }
        }
        assert_eq!(
            explained,
            json!([
                {"key": "a", "value": 2, "origin": "override", "text": "a=2"},
                {"key": "b", "value": 2, "origin": "file", "file": "FILE", "line": 2, "written": "${a}"},
            ])
        );
    }

    #[test]
    fn groups_are_listed_with_what_is_chosen() {
        insta::assert_snapshot!("groups", transcript(&["config", "--groups", "workload=dsocr-base-1024"]));
    }

    #[test]
    fn groups_as_json_name_files() {
        let shown = transcript(&["config", "--groups", "--json"]);
        assert!(shown.contains(r#""file": "conf/profiling/ncu/ncu.high.yaml""#), "{shown}");
        assert!(shown.contains(r#""pipeline.ncu": "ncu.default""#), "{shown}");
    }

    #[test]
    fn a_folder_adds_an_option_and_replaces_another() {
        let (folder, _) = world(&[
            ("workload/mine.yaml", "defaults:\n  - dsocr-base-1024\nprofile_id: mine\nbatch: 8\n"),
            ("runner/stage1.yaml", "mine: true\n"),
        ]);
        let path = folder.path().to_str().expect("a path");
        let shown = transcript(&["config", "--config-dir", path, "workload=mine"]);
        assert!(shown.contains("  profile_id: mine\n"), "{shown}");
        assert!(shown.contains("  batch: 8\n"), "{shown}");
        assert!(shown.contains("  base_size: 1024\n"), "{shown}");
        assert!(shown.contains("mine: true\nrun:\n"), "{shown}");
    }

    #[test]
    fn the_same_arguments_give_the_same_text() {
        let arguments = ["config", "run.id=fixed", "workload=dsocr-gundam-2x3"];
        assert_eq!(transcript(&arguments), transcript(&arguments));
    }
}
