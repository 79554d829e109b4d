//! Every way an override can be wrong, as a user sees it: what is wrong, where, and what to do.

#[path = "support/refusal.rs"]
mod refusal;
mod support;

use refusal::{refusal, world, wrong};

#[test]
fn unknown_key() {
    insta::assert_snapshot!(wrong("workload.bach=4"), @r"
    error: unknown key `workload.bach`
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
    error: unknown key `max_new_tokens`
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
    error: unknown key `workload.sek_len`
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
    error: unknown group `profiling/nsis`
     --> command line
      |
      | profiling/nsis=nsys.default
      | ^^^^^^^^^^^^^^
    hint: did you mean `profiling/nsys`?
    hint: list all groups and their options with `llm-perf config --groups`
    ");
}

#[test]
fn folder_of_groups_in_place_of_a_group() {
    insta::assert_snapshot!(wrong("model/deepseek_ocr@model=deepseek_ocr.default"), @r"
    error: unknown group `model/deepseek_ocr`
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
    hint: options of workload: audio-standard-v1, dsocr-base-1024, dsocr-gundam-2x3, dsocr-standard-v1, encoder-standard-v1, image-standard-v1, llm-standard-v1, vlm-standard-v1
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
    hint: to replace `model/deepseek_ocr/arch`, write model/dummy_shallow_resnet/arch@model=dummy_shallow_resnet.default
    hint: groups are mounted at `model`, `infer`, `dataset`, `dataset.sampling`, `pipeline.torch_profiler`, `pipeline.nsys`, `pipeline.ncu`, `workload` and `_global_`
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
    hint: groups are mounted at `model`, `infer`, `dataset`, `dataset.sampling`, `pipeline.torch_profiler`, `pipeline.nsys`, `pipeline.ncu`, `workload` and `_global_`
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
    hint: groups are mounted at `model`, `infer`, `dataset`, `dataset.sampling`, `pipeline.torch_profiler`, `pipeline.nsys`, `pipeline.ncu`, `workload` and `_global_`
    ");
}

#[test]
fn text_in_place_of_a_whole_number() {
    insta::assert_snapshot!(wrong("workload.batch=four"), @r"
    error: `workload.batch` must be a whole number, not a string
     --> command line
      |
      | workload.batch=four
      |                ^^^^
    hint: its type comes from conf/workload/dsocr-standard-v1.yaml:6:8; null is also accepted
    ");
}

#[test]
fn option_name_given_to_a_mounted_key() {
    insta::assert_snapshot!(wrong("model=alt"), @r"
    error: `model` must be a map, not a string
     --> command line
      |
      | model=alt
      |       ^^^
    hint: to choose an option, write model/llm@model=alt
    hint: its type comes from conf/model/deepseek_ocr/arch/deepseek_ocr.default.yaml:2:1; null is also accepted
    ");
}

#[test]
fn scalar_in_place_of_a_list() {
    insta::assert_snapshot!(wrong("workload.crop_grid=2"), @r"
    error: `workload.crop_grid` must be a list, not a whole number
     --> command line
      |
      | workload.crop_grid=2
      |                    ^
    hint: write a list as [a, b]
    hint: its type comes from conf/workload/dsocr-standard-v1.yaml:14:12; null is also accepted
    ");
}

#[test]
fn added_key_that_exists_keeps_its_type() {
    insta::assert_snapshot!(wrong("+workload.batch=[4]"), @r"
    error: `workload.batch` must be a whole number, not a list
     --> command line
      |
      | +workload.batch=[4]
      |                 ^^^
    hint: its type comes from conf/workload/dsocr-standard-v1.yaml:6:8; null is also accepted
    ");
}

#[test]
fn added_key_under_a_scalar() {
    insta::assert_snapshot!(wrong("+workload.batch.size=4"), @r"
    error: `workload.batch` must be a whole number, not a map
     --> command line
      |
      | +workload.batch.size=4
      |  ^^^^^^^^^^^^^^^^^^^
    hint: its type comes from conf/workload/dsocr-standard-v1.yaml:6:8; null is also accepted
    ");
}

#[test]
fn removed_key_that_is_missing() {
    insta::assert_snapshot!(wrong("~workload.bacth"), @r"
    error: unknown key `workload.bacth`
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
    error: index 2 is out of range: `workload.crop_grid` has 2 elements
     --> command line
      |
      | workload.crop_grid.2=1
      |                    ^
    hint: indices start at 0; to add an element, write +workload.crop_grid.2=VALUE
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
fn folder_of_groups_is_no_group() {
    insta::assert_snapshot!(wrong("+profiling=stage2"), @r"
    error: unknown group `profiling`
     --> command line
      |
      | +profiling=stage2
      |  ^^^^^^^^^
    hint: its groups are `profiling/ncu`, `profiling/nsys` and `profiling/torch`; write, for example, profiling/ncu=OPTION
    ");
}

#[test]
fn override_without_a_value() {
    insta::assert_snapshot!(wrong("workload"), @r"
    error: invalid override: missing `=`
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
    hint: values are parsed as YAML; quote a string for YAML too: "key='value'"
    "#);
}

#[test]
fn override_with_a_comment() {
    insta::assert_snapshot!(wrong("model.notes=see issue #12"), @r#"
    error: `#` starts a comment in YAML, so the rest would be lost
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
    error: the interpolation `${modle.name}` refers to a key that does not exist
     --> command line
      |
      | run.output_root=out/${modle.name}
      |                     ^^^^^^^^^^^^^
    hint: did you mean `model.name`?
    ");
}

#[test]
fn interpolation_cycle() {
    insta::assert_snapshot!(wrong("run.id=${artifacts.stage1_dir}"), @r"
    error: the interpolation forms a cycle: artifacts.stage1_dir -> run.id -> artifacts.stage1_dir
     --> conf/runner/stage1.yaml:3:15
      |
    3 |   stage1_dir: ${run.output_root}/${run.id}   # the run folder of `profile`
      |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn environment_is_not_read() {
    insta::assert_snapshot!(wrong("model.weights=${oc.env:HOME}/weights"), @r"
    error: invalid interpolation: environment variables are not read, so that a configuration means the same everywhere; pass the value as an override
     --> command line
      |
      | model.weights=${oc.env:HOME}/weights
      |               ^^^^^^^^^^^^^^^^^^^^^^
    hint: write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \${ for a literal ${
    ");
}

#[test]
fn unknown_interpolation_function() {
    insta::assert_snapshot!(wrong("run.id=${uuid:4}"), @r"
    error: invalid interpolation: unknown function `uuid`; only `now` is supported
     --> command line
      |
      | run.id=${uuid:4}
      |        ^^^^^^^^^
    hint: write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \${ for a literal ${
    ");
}

#[test]
fn wrong_date_format() {
    insta::assert_snapshot!(wrong("run.id=${now:%}"), @r"
    error: invalid interpolation: invalid date format `%`: strftime formatting failed: invalid format string, expected byte after `%`, but found end of format string
     --> command line
      |
      | run.id=${now:%}
      |        ^^^^^^^^
    hint: write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \${ for a literal ${
    ");
}

#[test]
fn unfinished_interpolation() {
    insta::assert_snapshot!(wrong("run.id='${now:%Y'"), @r"
    error: invalid interpolation: `${` without a closing `}`
     --> command line
      |
      | run.id='${now:%Y'
      |        ^^^^^^^^^^
    hint: write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \${ for a literal ${
    ");
}

#[test]
fn map_inside_a_text() {
    insta::assert_snapshot!(wrong("model.notes=about ${workload}"), @r"
    error: the interpolation `${workload}` is a map, which cannot be part of a string
     --> command line
      |
      | model.notes=about ${workload}
      |                   ^^^^^^^^^^^
    ");
}

#[test]
fn interpolation_that_leaves_the_root() {
    insta::assert_snapshot!(wrong("model.notes=${....name}"), @r"
    error: invalid interpolation: `${....name}` goes up more levels than `model.notes` has
     --> command line
      |
      | model.notes=${....name}
      |             ^^^^^^^^^^^
    hint: write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \${ for a literal ${
    ");
}
