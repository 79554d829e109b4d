//! Every way a configuration can be wrong, as a user sees it: what is wrong, where, and what to do.

use std::fs;
use std::path::Path;

use support::transcript;
use tempfile::TempDir;

mod support;

/// A configuration folder with these files. Its root replaces the built-in one.
fn world(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    folder
}

/// What standard error says about a configuration that must be refused as wrong usage.
fn refusal(folder: Option<&Path>, overrides: &[&str]) -> String {
    let path = folder.map(|folder| folder.to_str().expect("a path").to_owned());
    let mut arguments = vec!["config"];
    if let Some(path) = &path {
        arguments.extend(["--config-dir", path]);
    }
    arguments.extend(overrides);
    let shown = transcript(&arguments);
    let start = "exit: 2\n----- stdout -----\n----- stderr -----\n";
    let message = shown.strip_prefix(start).unwrap_or_else(|| panic!("not refused:\n{shown}"));
    path.iter().fold(message.to_owned(), |message, path| message.replace(path, "DIR"))
}

/// The refusal of an override on the built-in configuration.
fn wrong(one: &str) -> String {
    refusal(None, &[one])
}

/// The refusal of a root file.
fn wrong_root(text: &str) -> String {
    refusal(Some(world(&[("config.yaml", text)]).path()), &[])
}

#[test]
fn unknown_key() {
    insta::assert_snapshot!(wrong("workload.bach=4"), @r"
    error: there is no key `workload.bach`
     --> command line
      |
      | workload.bach=4
      |          ^^^^
    hint: did you mean `workload.batch`?
    hint: to add a key, write +workload.bach=4
    ");
}

#[test]
fn unknown_key_that_exists_elsewhere() {
    insta::assert_snapshot!(wrong("max_new_tokens=4"), @r"
    error: there is no key `max_new_tokens`
     --> command line
      |
      | max_new_tokens=4
      | ^^^^^^^^^^^^^^
    hint: did you mean `infer.max_new_tokens` or `workload.max_new_tokens`?
    hint: to add a key, write +max_new_tokens=4
    ");
}

#[test]
fn unknown_key_inside_a_map_value() {
    insta::assert_snapshot!(wrong("workload={batch: 2, sek_len: 3}"), @r"
    error: there is no key `workload.sek_len`
     --> command line
      |
      | workload={batch: 2, sek_len: 3}
      |                     ^^^^^^^
    hint: did you mean `workload.seq_len`?
    ");
}

#[test]
fn unknown_group() {
    insta::assert_snapshot!(wrong("profiling/nsis=nsys.default"), @r"
    error: there is no group `profiling/nsis`
     --> command line
      |
      | profiling/nsis=nsys.default
      | ^^^^^^^^^^^^^^
    hint: did you mean `profiling/nsys`?
    hint: `llm-perf config --groups` lists every group and its options
    ");
}

#[test]
fn folder_of_groups_in_place_of_a_group() {
    insta::assert_snapshot!(wrong("model/deepseek_ocr@model=deepseek_ocr.default"), @r"
    error: there is no group `model/deepseek_ocr`
     --> command line
      |
      | model/deepseek_ocr@model=deepseek_ocr.default
      | ^^^^^^^^^^^^^^^^^^
    hint: groups inside model/deepseek_ocr: model/deepseek_ocr/arch, model/deepseek_ocr/infer
    ");
}

#[test]
fn unknown_option() {
    insta::assert_snapshot!(wrong("workload=dsocr-standart-v1"), @r"
    error: the group `workload` has no option `dsocr-standart-v1`
     --> command line
      |
      | workload=dsocr-standart-v1
      |          ^^^^^^^^^^^^^^^^^
    hint: did you mean `dsocr-standard-v1`?
    hint: options of workload: dsocr-base-1024, dsocr-gundam-2x3, dsocr-standard-v1, image-standard-v1, llm-standard-v1, vlm-standard-v1
    ");
}

#[test]
fn group_that_is_not_mounted() {
    insta::assert_snapshot!(wrong("model/dummy_shallow_resnet/arch=dummy_shallow_resnet.default"), @r"
    error: the group `model/dummy_shallow_resnet/arch` is not mounted
     --> command line
      |
      | model/dummy_shallow_resnet/arch=dummy_shallow_resnet.default
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: to put it in the place of `model/deepseek_ocr/arch`, write model/dummy_shallow_resnet/arch@model=dummy_shallow_resnet.default
    hint: groups are mounted at `model`, `infer`, `dataset`, `dataset.sampling`, `pipeline.torch_profiler`, `pipeline.nsys`, `pipeline.ncu`, `workload` and `runner`
    ");
}

#[test]
fn package_where_nothing_is_mounted() {
    insta::assert_snapshot!(wrong("model/llm@modle=alt"), @r"
    error: nothing is mounted at `modle`
     --> command line
      |
      | model/llm@modle=alt
      |           ^^^^^
    hint: did you mean `model`?
    hint: groups are mounted at `model`, `infer`, `dataset`, `dataset.sampling`, `pipeline.torch_profiler`, `pipeline.nsys`, `pipeline.ncu`, `workload` and `runner`
    ");
}

#[test]
fn group_chosen_for_a_place_that_a_later_choice_takes_away() {
    let folder = world(&[
        ("config.yaml", "defaults:\n  - a: one\n"),
        ("a/one.yaml", "defaults:\n  - b: x\n"),
        ("a/two.yaml", "n: 1\n"),
        ("a/b/x.yaml", "n: 2\n"),
        ("a/b/y.yaml", "n: 3\n"),
    ]);
    insta::assert_snapshot!(refusal(Some(folder.path()), &["a/b=y", "a=two"]), @r"
    error: nothing is mounted at `a.b`
     --> command line
      |
      | a/b=y
      | ^^^
    hint: groups are mounted at `a`
    ");
}

#[test]
fn removed_group_that_is_not_the_one_mounted() {
    insta::assert_snapshot!(wrong("~model/llm@model"), @r"
    error: the group `model/llm` is not mounted at `model`
     --> command line
      |
      | ~model/llm@model
      |  ^^^^^^^^^
    hint: `model/deepseek_ocr/arch` is mounted there; to remove it, write ~model/deepseek_ocr/arch@model
    hint: groups are mounted at `model`, `infer`, `dataset`, `dataset.sampling`, `pipeline.torch_profiler`, `pipeline.nsys`, `pipeline.ncu`, `workload` and `runner`
    ");
}

#[test]
fn text_in_place_of_a_whole_number() {
    insta::assert_snapshot!(wrong("workload.batch=four"), @r"
    error: `workload.batch` is a whole number, not a text
     --> command line
      |
      | workload.batch=four
      |                ^^^^
    hint: its type comes from conf/workload/dsocr-standard-v1.yaml:6:8; null is accepted too
    ");
}

#[test]
fn option_name_given_to_a_mounted_key() {
    insta::assert_snapshot!(wrong("model=alt"), @r"
    error: `model` is a map, not a text
     --> command line
      |
      | model=alt
      |       ^^^
    hint: to choose an option, write model/llm@model=alt
    hint: its type comes from conf/model/deepseek_ocr/arch/deepseek_ocr.default.yaml:2:1; null is accepted too
    ");
}

#[test]
fn scalar_in_place_of_a_list() {
    insta::assert_snapshot!(wrong("workload.crop_grid=2"), @r"
    error: `workload.crop_grid` is a list, not a whole number
     --> command line
      |
      | workload.crop_grid=2
      |                    ^
    hint: a list is written [a, b]
    hint: its type comes from conf/workload/dsocr-standard-v1.yaml:14:12; null is accepted too
    ");
}

#[test]
fn added_key_that_exists() {
    insta::assert_snapshot!(wrong("+workload.batch=4"), @r"
    error: the key `workload.batch` exists already
     --> command line
      |
      | +workload.batch=4
      |  ^^^^^^^^^^^^^^
    hint: it is given at conf/workload/dsocr-standard-v1.yaml:6:8; to change it, write workload.batch=VALUE or ++workload.batch=VALUE
    ");
}

#[test]
fn added_key_under_a_scalar() {
    insta::assert_snapshot!(wrong("+workload.batch.size=4"), @r"
    error: `workload.batch` is a whole number, not a map
     --> command line
      |
      | +workload.batch.size=4
      |  ^^^^^^^^^^^^^^^^^^^
    hint: its type comes from conf/workload/dsocr-standard-v1.yaml:6:8; null is accepted too
    ");
}

#[test]
fn removed_key_that_is_missing() {
    insta::assert_snapshot!(wrong("~workload.bacth"), @r"
    error: there is no key `workload.bacth`
     --> command line
      |
      | ~workload.bacth
      |           ^^^^^
    hint: did you mean `workload.batch`?
    ");
}

#[test]
fn index_out_of_range() {
    insta::assert_snapshot!(wrong("workload.crop_grid.2=1"), @r"
    error: `workload.crop_grid` has 2 elements, so there is no element 2
     --> command line
      |
      | workload.crop_grid.2=1
      |                    ^
    hint: elements count from 0; to add one, write +workload.crop_grid.2=VALUE
    ");
}

#[test]
fn group_mounted_twice_by_an_override() {
    insta::assert_snapshot!(wrong("+model/llm@model=alt"), @r"
    error: two groups are mounted at `model`
     --> command line
      |
      | +model/llm@model=alt
      |  ^^^^^^^^^
    hint: the first is at conf/config.yaml:4:5; to replace it, write GROUP@model=OPTION
    ");
}

#[test]
fn override_without_a_value() {
    insta::assert_snapshot!(wrong("workload"), @r"
    error: cannot understand the override: there is no `=`
     --> command line
      |
      | workload
      | ^^^^^^^^
    hint: write key=value, group=option, group@package=option, +new.key=value, ++key=value or ~key
    ");
}

#[test]
fn override_value_that_is_not_yaml() {
    insta::assert_snapshot!(wrong("workload.crop_grid=[1,2"), @r#"
    error: not valid YAML: unclosed bracket '['
     --> command line
      |
      | workload.crop_grid=[1,2
      |                    ^
    hint: values are read as YAML; quote a text for YAML too: "key='value'"
    "#);
}

#[test]
fn override_with_a_comment() {
    insta::assert_snapshot!(wrong("model.notes=see issue #12"), @r#"
    error: `#` begins a comment in YAML, and what follows would be lost
     --> command line
      |
      | model.notes=see issue #12
      |                       ^^^
    hint: quote the value for YAML too: "key='value'"
    "#);
}

#[test]
fn missing_interpolation() {
    insta::assert_snapshot!(wrong("run.output_root=out/${modle.name}"), @r"
    error: the interpolation `${modle.name}` refers to nothing
     --> command line
      |
      | run.output_root=out/${modle.name}
      |                     ^^^^^^^^^^^^^
    hint: did you mean `model.name`?
    ");
}

#[test]
fn interpolation_cycle() {
    insta::assert_snapshot!(wrong("run.id=${runner.artifacts.stage1_dir}"), @r"
    error: the interpolation goes in a circle: runner.artifacts.stage1_dir -> run.id -> runner.artifacts.stage1_dir
     --> conf/runner/stage1.yaml:7:15
      |
    7 |   stage1_dir: ${run.output_root}/${run.id}   # the run folder
      |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn environment_is_not_read() {
    insta::assert_snapshot!(wrong("model.weights=${oc.env:HOME}/weights"), @r"
    error: cannot understand the interpolation: the environment is not read, so that a configuration means the same everywhere; pass the value as an override
     --> command line
      |
      | model.weights=${oc.env:HOME}/weights
      |               ^^^^^^^^^^^^^^^^^^^^^^
    hint: write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \${ for the characters themselves
    ");
}

#[test]
fn unknown_interpolation_function() {
    insta::assert_snapshot!(wrong("run.id=${uuid:4}"), @r"
    error: cannot understand the interpolation: there is no function `uuid`, only `now`
     --> command line
      |
      | run.id=${uuid:4}
      |        ^^^^^^^^^
    hint: write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \${ for the characters themselves
    ");
}

#[test]
fn wrong_date_format() {
    insta::assert_snapshot!(wrong("run.id=${now:%}"), @r"
    error: cannot understand the interpolation: `%` is no date format: strftime formatting failed: invalid format string, expected byte after `%`, but found end of format string
     --> command line
      |
      | run.id=${now:%}
      |        ^^^^^^^^
    hint: write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \${ for the characters themselves
    ");
}

#[test]
fn unfinished_interpolation() {
    insta::assert_snapshot!(wrong("run.id='${now:%Y'"), @r"
    error: cannot understand the interpolation: `${` without a closing `}`
     --> command line
      |
      | run.id='${now:%Y'
      |        ^^^^^^^^^^
    hint: write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \${ for the characters themselves
    ");
}

#[test]
fn map_inside_a_text() {
    insta::assert_snapshot!(wrong("model.notes=about ${workload}"), @r"
    error: the interpolation `${workload}` is a map, which cannot stand inside a text
     --> command line
      |
      | model.notes=about ${workload}
      |                   ^^^^^^^^^^^
    ");
}

#[test]
fn interpolation_that_leaves_the_root() {
    insta::assert_snapshot!(wrong("model.notes=${....name}"), @r"
    error: cannot understand the interpolation: `${....name}` goes up further than `model.notes` is deep
     --> command line
      |
      | model.notes=${....name}
      |             ^^^^^^^^^^^
    hint: write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \${ for the characters themselves
    ");
}

#[test]
fn yaml_syntax_error() {
    insta::assert_snapshot!(wrong_root("a: 1\nb: [1, 2\nc: 3\n"), @r"
    error: not valid YAML: illegal placement of ':' indicator
     --> DIR/config.yaml:3:2
      |
    3 | c: 3
      |  ^
    ");
}

#[test]
fn duplicate_key() {
    insta::assert_snapshot!(wrong_root("a:\n  b: 1\n  c: 2\n  b: 3\n"), @r"
    error: the key `b` is given twice
     --> DIR/config.yaml:4:3
      |
    4 |   b: 3
      |   ^
    hint: it is first given at DIR/config.yaml:2:3
    ");
}

#[test]
fn anchor() {
    insta::assert_snapshot!(wrong_root("a: &x 1\nb: *x\n"), @r"
    error: an anchor is not supported in configuration
     --> DIR/config.yaml:1:7
      |
    1 | a: &x 1
      |       ^
    hint: to use a value twice, write ${the.other.key}
    ");
}

#[test]
fn number_that_is_too_large() {
    insta::assert_snapshot!(wrong("workload.batch=99999999999999999999"), @r"
    error: the number `99999999999999999999` does not fit into 64 bits
     --> command line
      |
      | workload.batch=99999999999999999999
      |                ^^^^^^^^^^^^^^^^^^^^
    hint: quote it to make it a text
    ");
}

#[test]
fn nesting_that_is_too_deep() {
    insta::assert_snapshot!(wrong_root(&format!("a: {}{}\n", "[".repeat(70), "]".repeat(70))), @r"
    error: maps and lists are nested more than 64 deep
     --> DIR/config.yaml:1:68
      |
    1 | a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
      |                                                                    ^
    ");
}

#[test]
fn second_document() {
    insta::assert_snapshot!(wrong_root("a: 1\n---\nb: 2\n"), @r"
    error: a second document is not supported in configuration
     --> DIR/config.yaml:3:1
      |
    3 | b: 2
      | ^
    ");
}

#[test]
fn file_that_is_a_list() {
    insta::assert_snapshot!(wrong_root("- a\n- b\n"), @r"
    error: a configuration file holds keys and values, and this is a list
     --> DIR/config.yaml:1:1
      |
    1 | - a
      | ^^^
    ");
}

#[test]
fn key_that_cannot_be_named() {
    insta::assert_snapshot!(wrong_root("a:\n  b.c: 1\n"), @r"
    error: `b.c` cannot be a key: keys are not empty and hold no `.`, `/`, `@`, `=` or blanks
     --> DIR/config.yaml:2:3
      |
    2 |   b.c: 1
      |   ^^^
    ");
}

#[test]
fn defaults_that_are_not_a_list() {
    insta::assert_snapshot!(wrong_root("defaults: workload\n"), @r"
    error: `defaults` is a list, not a text
     --> DIR/config.yaml:1:11
      |
    1 | defaults: workload
      |           ^^^^^^^^
    ");
}

#[test]
fn defaults_element_with_two_groups() {
    insta::assert_snapshot!(wrong_root("defaults:\n  - workload: dsocr-base-1024\n    runner: stage1\n"), @r"
    error: one element of the defaults names one group
     --> DIR/config.yaml:2:5
      |
    2 |   - workload: dsocr-base-1024
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn defaults_with_an_unknown_option() {
    insta::assert_snapshot!(wrong_root("defaults:\n  - runner: stage3\n"), @r"
    error: the group `runner` has no option `stage3`
     --> DIR/config.yaml:2:13
      |
    2 |   - runner: stage3
      |             ^^^^^^
    hint: did you mean `stage1`?
    hint: options of runner: stage1, stage2
    ");
}

#[test]
fn defaults_with_an_unknown_file() {
    insta::assert_snapshot!(wrong_root("defaults:\n  - comon\n"), @r"
    error: there is no file `comon.yaml`
     --> DIR/config.yaml:2:5
      |
    2 |   - comon
      |     ^^^^^
    ");
}

#[test]
fn defaults_cycle() {
    let folder = world(&[
        ("config.yaml", "defaults:\n  - a: one\n"),
        ("a/one.yaml", "defaults:\n  - two\nx: 1\n"),
        ("a/two.yaml", "defaults:\n  - one\n"),
    ]);
    insta::assert_snapshot!(refusal(Some(folder.path()), &[]), @r"
    error: the defaults go in a circle: config -> a/one -> a/two -> a/one
     --> DIR/a/two.yaml:2:5
      |
    2 |   - one
      |     ^^^
    ");
}

#[test]
fn group_mounted_twice_by_a_file() {
    insta::assert_snapshot!(
        wrong_root("defaults:\n  - runner: stage1\n  - workload@runner: dsocr-base-1024\n"),
        @r"
        error: two groups are mounted at `runner`
         --> DIR/config.yaml:3:5
          |
        3 |   - workload@runner: dsocr-base-1024
          |     ^^^^^^^^^^^^^^^
        hint: the first is at DIR/config.yaml:2:5; to replace it, write GROUP@runner=OPTION
        "
    );
}

#[test]
fn group_mounted_at_two_places() {
    let folder = world(&[(
        "config.yaml",
        "defaults:\n  - runner@a: stage1\n  - runner@b: stage2\nrun: {output_root: o, id: i}\n",
    )]);
    insta::assert_snapshot!(refusal(Some(folder.path()), &["runner=stage2"]), @r"
    error: the group `runner` is mounted at `a` and `b`
     --> command line
      |
      | runner=stage2
      | ^^^^^^
    hint: say which: runner@a=OPTION or runner@b=OPTION
    ");
}

#[test]
fn files_that_disagree_about_a_type() {
    insta::assert_snapshot!(
        wrong_root("defaults:\n  - workload: dsocr-base-1024\n  - _self_\nworkload:\n  batch: many\n"),
        @r"
        error: `workload.batch` is a whole number, not a text
         --> DIR/config.yaml:5:10
          |
        5 |   batch: many
          |          ^^^^
        hint: its type comes from conf/workload/dsocr-base-1024.yaml:6:8; null is accepted too
        "
    );
}

#[test]
fn folder_that_is_missing() {
    let folder = world(&[]);
    let missing = folder.path().join("nowhere");
    insta::assert_snapshot!(refusal(Some(&missing), &[]), @r"
    error: cannot use the configuration folder DIR: No such file or directory (os error 2)
    hint: --config-dir takes a folder laid out like the built-in one: GROUP/OPTION.yaml
    ");
}

#[test]
fn folder_that_is_a_file() {
    let folder = world(&[("config.yaml", "a: 1\n")]);
    insta::assert_snapshot!(refusal(Some(&folder.path().join("config.yaml")), &[]), @r"
    error: cannot use the configuration folder DIR: Not a directory (os error 20)
    hint: --config-dir takes a folder laid out like the built-in one: GROUP/OPTION.yaml
    ");
}

#[test]
fn file_with_the_wrong_ending() {
    let folder = world(&[("workload/mine.yml", "a: 1\n")]);
    insta::assert_snapshot!(refusal(Some(folder.path()), &[]), @r"
    error: cannot use the configuration folder DIR/workload/mine.yml: configuration files end in .yaml
    hint: --config-dir takes a folder laid out like the built-in one: GROUP/OPTION.yaml
    ");
}

#[test]
fn file_that_is_not_text() {
    let folder = world(&[]);
    fs::write(folder.path().join("config.yaml"), [0xff, 0xfe, 0x00]).expect("a file");
    insta::assert_snapshot!(refusal(Some(folder.path()), &[]), @"error: cannot read DIR/config.yaml: stream did not contain valid UTF-8");
}

#[test]
fn file_that_is_far_too_large() {
    let folder = world(&[("config.yaml", &"#".repeat(2 << 20))]);
    insta::assert_snapshot!(refusal(Some(folder.path()), &[]), @"error: cannot read DIR/config.yaml: 2097152 bytes is more than a configuration file may have (1048576)");
}
