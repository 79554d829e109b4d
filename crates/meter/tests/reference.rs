//! FLOPs of the metered network against those that another project counted by crop grid; the figures are no part of this project.

mod deepseek_ocr;

use deepseek_ocr::{assert_close, metered, model, settings};
use llm_perf_meter::Prediction;
use network::Model;
use testkit::need::{Need, reference};
use types::Stage;

const FIGURES: &str = "third-party/crop-grid-flops.csv";

testkit::suite! {
    [Need::Reference(FIGURES)] => { every_row_of_the_published_crop_grid_figures_is_matched }
}

fn vision_flops(model: &Model, prediction: &Prediction) -> f64 {
    let vision = [Stage::Sam, Stage::Clip, Stage::Projector];
    let inside = |stage: Option<Stage>| stage.is_some_and(|stage| vision.contains(&stage));
    let ops = prediction.prefill.ops.iter().filter(|op| inside(model.blueprint().stage_of(op.module)));
    ops.map(|op| op.cost.flops_matrix.as_f64()).sum()
}

fn every_row_of_the_published_crop_grid_figures_is_matched() {
    let text = std::fs::read_to_string(reference(FIGURES)).unwrap();
    let model = model();
    let mut rows = 0;
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |index: usize| cells[index].parse::<u64>().unwrap();
        let (grid, context, steps) = ([number(2), number(1)], number(3), number(4));
        let wanted = cells[5].parse::<f64>().unwrap();
        let found = match cells[0] {
            "vision" => vision_flops(&model, &metered(&model, &settings(grid, 5000, 1))),
            "vision+prefill" => metered(&model, &settings(grid, context, 1)).prefill.total().flops_matrix.as_f64(),
            "decode" => {
                let decode = metered(&model, &settings(grid, context, steps)).decode.unwrap();
                decode.total().flops_matrix.as_f64()
            }
            other => panic!("unknown stage {other}"),
        };
        assert_close(line, found, wanted);
        rows += 1;
    }
    assert!(rows > 0, "the file has no rows");
}
