//! Names of hardware counters that more than one room reads.

use types::DType;

/// Device time of a kernel or a range, which weighs everything else.
pub const TIME: &str = "gpu__time_duration.sum";

/// Instructions of the vector units: element type, counter, FLOPs of each. Packed half precision does two of each.
pub(crate) const VECTOR: [(DType, &str, f64); 9] = [
    (DType::Fp32, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 1.0),
    (DType::Fp32, "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 1.0),
    (DType::Fp32, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2.0),
    (DType::Fp16, "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", 2.0),
    (DType::Fp16, "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", 2.0),
    (DType::Fp16, "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 4.0),
    (DType::Fp64, "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", 1.0),
    (DType::Fp64, "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", 1.0),
    (DType::Fp64, "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", 2.0),
];
