//! Attention, and what chooses or compresses its keys.

use types::{AttentionDetail, Chosen, DType, Shape, Spec};

use super::{Made, activation, ends_within, equal, same};

pub(super) fn attention(inputs: &[Spec], causal: bool, detail: AttentionDetail) -> Made {
    let (q, k, v) = (inputs[0].shape, inputs[1].shape, inputs[2].shape);
    let (q, k, v) = (q.dims(), k.dims(), v.dims());
    equal("batch of queries and keys", q[0], k[0])?;
    equal("width of queries and keys", q[3], k[3])?;
    equal("length of keys and values", k[2], v[2])?;
    equal("heads of keys and values", k[1], v[1])?;
    if k[1] == 0 || !q[1].is_multiple_of(k[1]) {
        return Err(format!("{} query heads cannot share {} key heads", q[1], k[1]));
    }
    if causal {
        ends_within(q[2], k[2])?;
    }
    if let Some(last) = inputs.get(3).map(|last| last.shape) {
        if detail.sinks {
            equal("sinks and query heads", last.elements(), q[1])?;
        } else if detail.chosen == Chosen::Here {
            if last.rank() != 3 || last.dims()[..2] != [q[0], q[2]] {
                return Err("chosen keys must be [batch, queries, keys]".into());
            }
        } else if last != Shape::from([q[0], q[1], q[2], k[2]]) {
            return Err("bias must be [batch, heads, queries, keys]".into());
        }
    }
    Ok(activation([q[0], q[1], q[2], v[3]], inputs[0].dtype))
}

pub(super) fn latent(inputs: &[Spec], causal: bool) -> Made {
    let shapes = [0, 1, 2, 3].map(|index: usize| inputs[index].shape);
    let [q, turned, latents, keys] = [0, 1, 2, 3].map(|index: usize| shapes[index].dims());
    equal("width of queries and latents", q[3], latents[3])?;
    equal("width of rotated queries and keys", turned[3], keys[3])?;
    equal("positions of latents and keys", latents[2], keys[2])?;
    if q[..3] != turned[..3] || latents[..2] != [q[0], 1] || keys[..2] != [q[0], 1] {
        return Err("batches, heads or queries differ".into());
    }
    if causal {
        ends_within(q[2], latents[2])?;
    }
    Ok(same(inputs[0]))
}

pub(super) fn index_positions(inputs: &[Spec], keep: u64) -> Made {
    let (q, k) = (inputs[0].shape, inputs[1].shape);
    equal("width of queries and keys", q.last(), k.last())?;
    equal("weights and heads", inputs[2].shape.last(), q.dims()[1])?;
    Ok(activation([q.dims()[0], q.dims()[2], keep], DType::Int64))
}

pub(super) fn index_entries(inputs: &[Spec], every: u64) -> Made {
    let q = inputs[0].shape;
    equal("width of queries and entries", q.last(), inputs[1].shape.last() * every)?;
    equal("weights and heads", inputs[2].shape.last(), q.dims()[1])?;
    Ok(activation([q.dims()[0], q.dims()[2], 1], DType::Int64))
}

pub(super) fn compress_positions(inputs: &[Spec], every: u64, width: u64) -> Made {
    let x = inputs[0].shape;
    if x != inputs[1].shape {
        return Err("values and gates differ".into());
    }
    equal("values and biases", x.last(), inputs[2].shape.last())?;
    if every == 0 || !width.is_multiple_of(every) {
        return Err(format!("an entry of {width} cannot be one of {every} positions"));
    }
    Ok(activation([x.dims()[0], 1, x.dims()[1], width / every], inputs[0].dtype))
}
