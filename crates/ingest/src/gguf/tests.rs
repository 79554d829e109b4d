use super::*;

const FILE: &[u8] = include_bytes!("../../tests/fixtures/gguf/tiny-llama-q4_k.gguf");

fn header(bytes: &[u8]) -> Result<GgufHeader, IngestError> {
    read(bytes, bytes.len() as u64, "model.gguf")
}

fn refusal(bytes: &[u8]) -> String {
    header(bytes).unwrap_err().to_string()
}

/// A file of one value of that kind with those bytes.
fn with_value(kind: u32, value: &[u8]) -> Vec<u8> {
    let mut bytes = start(0, 1);
    bytes.extend(name("k"));
    bytes.extend(kind.to_le_bytes());
    bytes.extend(value);
    bytes
}

fn with_tensor(dimensions: &[u64], kind: u32) -> Vec<u8> {
    let mut bytes = start(1, 0);
    bytes.extend(name("t"));
    bytes.extend((dimensions.len() as u32).to_le_bytes());
    bytes.extend(dimensions.iter().flat_map(|size| size.to_le_bytes()));
    bytes.extend(kind.to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    bytes
}

fn start(tensors: u64, values: u64) -> Vec<u8> {
    [b"GGUF".as_slice(), &3_u32.to_le_bytes(), &tensors.to_le_bytes(), &values.to_le_bytes()].concat()
}

fn name(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

#[test]
fn a_file_of_the_gguf_package_says_what_it_is_made_of() {
    let header = header(FILE).unwrap();
    assert_eq!(header.text("general.architecture"), Some("llama"));
    assert_eq!(header.number("llama.block_count"), Some(2));
    assert_eq!(header.values.get("tokenizer.ggml.tokens"), Some(&GgufValue::LongList(512)));
    let down = header.tensor("blk.0.ffn_down.weight").unwrap();
    assert_eq!((down.kind.name, down.elements, down.bytes), ("Q6_K", 512 * 256, 512 * 256 / 256 * 210));
    let query = header.tensor("blk.1.attn_q.weight").unwrap();
    assert_eq!((query.kind.name, query.bytes), ("Q4_K", 256 * 144));
}

#[test]
fn a_file_that_is_cut_anywhere_in_its_header_names_the_byte_and_the_part() {
    let whole = header(FILE).unwrap();
    let mut cut = 0;
    for length in 0..FILE.len() {
        match header(&FILE[..length]) {
            // Behind the header: the weights are not read.
            Ok(found) => {
                assert_eq!(found, whole);
                break;
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with("model.gguf is damaged at byte "), "{length}: {text}");
                cut = length;
            }
        }
    }
    assert!(cut > 1000 && cut < FILE.len(), "{cut}");
}

#[test]
fn absurd_counts_and_lengths_are_refused_before_memory_is_taken() {
    let tensors = refusal(&start(u64::MAX, 0));
    assert!(tensors.contains("the number of tensors") && tensors.contains("the limit is 262144"), "{tensors}");
    let values = refusal(&start(0, 1 << 40));
    assert!(values.contains("the number of metadata values"), "{values}");
    let text = refusal(&with_value(8, &u64::MAX.to_le_bytes()));
    assert!(text.contains("the value of `k`") && text.contains("the file ends"), "{text}");
    let texts = refusal(&with_value(9, &[8_u32.to_le_bytes().as_slice(), &u64::MAX.to_le_bytes()].concat()));
    assert!(texts.contains("strings, more than the file can hold"), "{texts}");
    let numbers = refusal(&with_value(9, &[4_u32.to_le_bytes().as_slice(), &u64::MAX.to_le_bytes()].concat()));
    assert!(numbers.contains("a list of 18446744073709551615 numbers"), "{numbers}");
    let lists = refusal(&with_value(9, &[9_u32.to_le_bytes().as_slice(), &1_u64.to_le_bytes()].concat()));
    assert!(lists.contains("a list of lists"), "{lists}");
    let mut long = start(0, 1);
    long.extend((1_u64 << 20).to_le_bytes());
    assert!(refusal(&long).contains("a name of 1048576 bytes; the limit is 65535"));
    let kind = refusal(&with_value(99, &[]));
    assert!(kind.contains("unknown value type 99"), "{kind}");
}

#[test]
fn tensors_that_cannot_be_are_refused_by_name() {
    let unknown = header(&with_tensor(&[32], 4)).unwrap_err();
    let text = unknown.to_string();
    assert!(text.contains("tensor `t`") && text.contains("unknown type 4; expected one of F32"), "{text}");
    assert!(types::Failure::hint(&unknown).unwrap().contains("update llm-perf"));
    let row = refusal(&with_tensor(&[100, 2], 12));
    assert!(row.contains("rows of 100 elements; Q4_K has blocks of 256"), "{row}");
    for sizes in [[0, 4].as_slice(), &[u64::MAX, 4]] {
        let impossible = refusal(&with_tensor(sizes, 0));
        assert!(impossible.contains("invalid sizes ["), "{impossible}");
    }
    let rank = refusal(&with_tensor(&[1; 5], 0));
    assert!(rank.contains("5 dimensions; expected 1 to 4"), "{rank}");
}

#[test]
fn other_formats_and_versions_are_told() {
    assert!(refusal(b"{\"a\": 1, \"b\": 2}").contains("is not a GGUF file"));
    let version = |number: u32| [b"GGUF".as_slice(), &number.to_le_bytes()].concat();
    assert!(refusal(&version(4)).contains("version 4; only versions 2 and 3 are supported"));
    assert!(refusal(&version(1)).contains("version 1"));
    assert!(refusal(&version(3_u32.swap_bytes())).contains("big-endian"));
    assert!(refusal(b"").contains("damaged at byte 0"));
}

#[test]
fn keys_and_names_come_once_and_cannot_command_a_terminal() {
    let mut twice = with_value(7, &[1]);
    twice[16] = 2;
    twice.extend(name("k"));
    twice.extend(7_u32.to_le_bytes());
    twice.push(0);
    assert!(refusal(&twice).contains("duplicate key"));
    let mut bytes = start(0, 1);
    bytes.extend(name("\u{1b}[31m"));
    bytes.extend(99_u32.to_le_bytes());
    let text = refusal(&bytes);
    assert!(!text.contains('\u{1b}') && text.contains("\\u{1b}"), "{text}");
}
