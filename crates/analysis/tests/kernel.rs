//! Kernel families and short names on the names of real captures.

mod attribution_captures;

use std::collections::{BTreeMap, BTreeSet};

use attribution_captures as captures;
use llm_perf_analysis::kernel::{Family, classify, family_of_work, short_name};
use types::DType;
use types::timeline::{Timeline, WorkKind};

/// Share of device time by family.
fn shares(timeline: &Timeline) -> BTreeMap<Family, f64> {
    let total: i64 = timeline.work.iter().map(|work| work.duration.get()).sum();
    let mut shares = BTreeMap::new();
    for work in &timeline.work {
        let family = family_of_work(work.kind, timeline.name(work.name));
        *shares.entry(family).or_insert(0.0) += work.duration.get() as f64 / total as f64;
    }
    shares
}

fn unknown(timeline: &Timeline) -> Vec<&str> {
    let other =
        timeline.work.iter().filter(|work| family_of_work(work.kind, timeline.name(work.name)) == Family::Other);
    other.map(|work| timeline.name(work.name)).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn families_cover_the_device_time_of_real_captures() {
    for timeline in [captures::torch_h200(), captures::nsys_h200()] {
        let other = shares(&timeline).get(&Family::Other).copied().unwrap_or(0.0);
        assert!(other <= 0.03, "{other}: {:#?}", unknown(&timeline));
    }
}

#[test]
fn families_of_real_names_are_known() {
    let table = include_str!("data/kernel-families.tsv");
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (family, name) = line.split_once('\t').unwrap();
        assert_eq!(classify(name).family.name(), family, "{name}");
    }
}

#[test]
fn both_tools_spell_the_same_families() {
    let round = |shares: BTreeMap<Family, f64>| -> Vec<(Family, f64)> {
        shares.into_iter().filter(|(_, share)| *share > 0.02).collect()
    };
    let (torch, nsys) = (round(shares(&captures::torch_h200())), round(shares(&captures::nsys_h200())));
    assert_eq!(torch.len(), nsys.len(), "{torch:?} {nsys:?}");
    for ((family, torch), (same, nsys)) in torch.into_iter().zip(nsys) {
        assert_eq!(family, same);
        assert!((torch - nsys).abs() < 0.02, "{family:?}: {torch} {nsys}");
    }
}

#[test]
fn every_short_name_of_the_h200_capture_reads_well() {
    let timeline = captures::torch_h200();
    let kernels = timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
    let names: BTreeSet<&str> = kernels.map(|work| timeline.name(work.name)).collect();
    let lines: BTreeSet<String> = names
        .iter()
        .map(|name| {
            let kind = classify(name);
            let dtype = kind.dtype.map_or("-", DType::name);
            let tile = kind.tile.map_or("-".to_owned(), |tile| match tile.k {
                Some(k) => format!("{}x{}x{k}", tile.m, tile.n),
                None => format!("{}x{}", tile.m, tile.n),
            });
            format!("{:<13} {:<5} {tile:<11} {}", kind.family.name(), dtype, short_name(name))
        })
        .collect();
    insta::assert_snapshot!(lines.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn both_tools_give_the_same_short_names() {
    let short = |timeline: &Timeline| -> BTreeSet<String> {
        let kernels = timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
        kernels.map(|work| timeline.name(work.name)).collect::<BTreeSet<_>>().into_iter().map(short_name).collect()
    };
    let (torch, nsys) = (short(&captures::torch_h200()), short(&captures::nsys_h200()));
    // cuBLAS chooses other tiles from run to run; all else is the same.
    let differs = |name: &&String| !name.starts_with("nvjet_") && !name.starts_with("cutlass_");
    let differing: Vec<&String> = torch.symmetric_difference(&nsys).filter(differs).collect();
    assert_eq!(differing, [] as [&String; 0]);
}
