//! Writing keys and values to the cache.

use super::{Call, Derivation, read};
use crate::term::{Quantity, Term};

pub(super) const APPEND: Derivation = Derivation {
    definition: "the cache gains k and v of the current positions",
    text: "New keys and values are read and appended to the cache. The cache is preallocated, so its contents do not \
           move.",
    source: "Pope et al. 2022, Efficiently Scaling Transformer Inference, section 3",
};

pub(super) fn append(call: &Call<'_>) -> Vec<Term> {
    let reads = call.inputs.iter().map(read);
    let writes = call.inputs.iter().map(|spec| Term { quantity: Quantity::KvWrite, ..read(spec) });
    reads.chain(writes).collect()
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Op};

    use crate::price::sample::{activation, cost};

    #[test]
    fn one_token_of_one_layer_writes_its_keys_and_values() {
        // 10 heads of 128 in bf16, keys and values: 5,120 B; twelve layers make the 61,440 B per token.
        let token = activation([1, 10, 1, 128]);
        let cost = cost(Op::CacheAppend, &[token, token]);
        assert_eq!(cost.bytes.kv_write, Bytes::new(5_120));
        assert_eq!(cost.bytes.kv_read, Bytes::ZERO);
    }
}
