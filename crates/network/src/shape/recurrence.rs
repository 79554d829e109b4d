//! Layers that carry a state from position to position.

use types::Spec;

use super::{Made, equal, same};

pub(super) fn gated_delta(inputs: &[Spec]) -> Made {
    let (q, v) = (inputs[0].shape, inputs[2].shape);
    let (q, v) = (q.dims(), v.dims());
    if inputs[0].shape != inputs[1].shape || q[..2] != v[..2] {
        return Err("queries, keys and values differ".into());
    }
    if q[2] == 0 || !v[2].is_multiple_of(q[2]) {
        return Err(format!("{} value heads cannot share {} key heads", v[2], q[2]));
    }
    Ok(same(inputs[2]))
}

pub(super) fn state_space(inputs: &[Spec]) -> Made {
    let (x, to) = (inputs[0].shape, inputs[1].shape);
    let (x, to) = (x.dims(), to.dims());
    if inputs[1].shape != inputs[2].shape || x[..2] != to[..2] {
        return Err("inputs and outputs of the state differ".into());
    }
    if to[2] == 0 || !x[2].is_multiple_of(to[2]) {
        return Err(format!("{} heads cannot share {} groups", x[2], to[2]));
    }
    equal("steps and heads", inputs[3].shape.last(), x[2])?;
    Ok(same(inputs[0]))
}

pub(super) fn selective_scan(inputs: &[Spec]) -> Made {
    equal("channels and steps", inputs[0].shape.last(), inputs[1].shape.last())?;
    equal("inputs and outputs of the state", inputs[2].shape.last(), inputs[3].shape.last())?;
    equal("channels and decay", inputs[0].shape.last(), inputs[4].shape.dims()[0])?;
    Ok(same(inputs[0]))
}
