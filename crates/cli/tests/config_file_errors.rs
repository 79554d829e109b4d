//! Every way a configuration file can be wrong, as a user sees it: what is wrong, where, and what to do.

#[path = "support/refusal.rs"]
mod refusal;
mod support;

use refusal::{refusal, world, wrong, wrong_root};

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
    hint: first given at DIR/config.yaml:2:3
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
    error: the number `99999999999999999999` does not fit in 64 bits
     --> command line
      |
      | workload.batch=99999999999999999999
      |                ^^^^^^^^^^^^^^^^^^^^
    hint: quote it to make it a string
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
    error: a configuration file must contain keys and values, not a list
     --> DIR/config.yaml:1:1
      |
    1 | - a
      | ^^^
    ");
}

#[test]
fn key_that_cannot_be_named() {
    insta::assert_snapshot!(wrong_root("a:\n  b.c: 1\n"), @r"
    error: invalid key `b.c`: a key must not be empty or contain `.`, `/`, `@`, `=` or spaces
     --> DIR/config.yaml:2:3
      |
    2 |   b.c: 1
      |   ^^^
    ");
}

#[test]
fn defaults_that_are_not_a_list() {
    insta::assert_snapshot!(wrong_root("defaults: workload\n"), @r"
    error: `defaults` must be a list, not a string
     --> DIR/config.yaml:1:11
      |
    1 | defaults: workload
      |           ^^^^^^^^
    ");
}

#[test]
fn defaults_element_with_two_groups() {
    insta::assert_snapshot!(wrong_root("defaults:\n  - workload: dsocr-base-1024\n    runner: stage1\n"), @r"
    error: an entry of the defaults must name exactly one group
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
    error: file `comon.yaml` not found
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
    error: the defaults form a cycle: config -> a/one -> a/two -> a/one
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
    hint: choose one: runner@a=OPTION or runner@b=OPTION
    ");
}

#[test]
fn files_that_disagree_about_a_type() {
    insta::assert_snapshot!(
        wrong_root("defaults:\n  - workload: dsocr-base-1024\n  - _self_\nworkload:\n  batch: many\n"),
        @r"
        error: `workload.batch` must be a whole number, not a string
         --> DIR/config.yaml:5:10
          |
        5 |   batch: many
          |          ^^^^
        hint: its type comes from conf/workload/dsocr-base-1024.yaml:6:8; null is also accepted
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
    error: cannot use the configuration folder DIR/workload/mine.yml: configuration files must end in .yaml
    hint: --config-dir takes a folder laid out like the built-in one: GROUP/OPTION.yaml
    ");
}

#[test]
fn file_that_is_not_text() {
    let folder = world(&[]);
    std::fs::write(folder.path().join("config.yaml"), [0xff, 0xfe, 0x00]).expect("a file");
    insta::assert_snapshot!(refusal(Some(folder.path()), &[]), @"error: cannot read DIR/config.yaml: stream did not contain valid UTF-8");
}

#[test]
fn file_that_is_far_too_large() {
    let folder = world(&[("config.yaml", &"#".repeat(2 << 20))]);
    insta::assert_snapshot!(refusal(Some(folder.path()), &[]), @"error: cannot read DIR/config.yaml: it is larger than 1048576 bytes, the most a configuration file may have");
}
