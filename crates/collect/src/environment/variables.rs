//! Environment variables that change how work runs. Nothing outside one fixed list is read, and a value on it that looks
//! like a secret is withheld: `env.json` is made to be passed on.

use std::collections::BTreeMap;

/// The whole list.
pub(super) const ALLOWED: [&str; 26] = [
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_CACHE_DISABLE",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "KMP_AFFINITY",
    "MKL_NUM_THREADS",
    "NCCL_DEBUG",
    "NCCL_P2P_DISABLE",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OPENBLAS_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "RAYON_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "TORCHINDUCTOR_COMPILE_THREADS",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_CUDA_ARCH_LIST",
    "TRITON_PRINT_AUTOTUNING",
];

/// What stands in the place of a value that looks like a secret.
const WITHHELD: &str = "(withheld: looks like a secret)";

/// Letters and digits in a row from which a word may be a key rather than a setting.
const TOKEN_LENGTH: usize = 24;

/// The variables that are set, and a note for each that was withheld.
pub(super) fn capture() -> (BTreeMap<String, String>, Vec<String>) {
    choose(ALLOWED.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?.into_string().ok()?))))
}

/// Keeps what is on the list and withholds what looks like a secret.
fn choose(variables: impl IntoIterator<Item = (String, String)>) -> (BTreeMap<String, String>, Vec<String>) {
    let mut kept = BTreeMap::new();
    let mut notes = Vec::new();
    for (name, value) in variables.into_iter().filter(|(name, _)| ALLOWED.contains(&name.as_str())) {
        if looks_like_a_secret(&value) {
            notes.push(format!("the value of {name} was withheld because it looks like a secret"));
            kept.insert(name, WITHHELD.to_owned());
        } else {
            kept.insert(name, value);
        }
    }
    (kept, notes)
}

/// Whether a value may hold a key, a token or a password. Errs on the side of withholding.
fn looks_like_a_secret(value: &str) -> bool {
    const KEY_PREFIXES: [&str; 9] = ["hf_", "sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xox", "AKIA", "eyJ"];
    let word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '+' | '/' | '=');
    value.contains("://") && value.contains('@')
        || value.split(|letter: char| !word(letter)).filter(|word| !is_device(word)).any(|word| {
            let digits = word.bytes().any(|byte| byte.is_ascii_digit());
            let letters = word.bytes().any(|byte| byte.is_ascii_alphabetic());
            KEY_PREFIXES.iter().any(|prefix| word.starts_with(prefix))
                || word.len() >= TOKEN_LENGTH && digits && letters
        })
}

/// A permanent identifier of a GPU, which `CUDA_VISIBLE_DEVICES` may list and which is no secret.
fn is_device(word: &str) -> bool {
    let id = word.strip_prefix("GPU-").or_else(|| word.strip_prefix("MIG-"));
    // Old drivers write MIG-GPU-<id>/<instance>/<instance>.
    let id = id.map(|id| id.strip_prefix("GPU-").unwrap_or(id));
    id.is_some_and(|id| {
        let (id, instances) = id.split_once('/').unwrap_or((id, ""));
        id.len() <= 36
            && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
            && instances.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        choose(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).0
    }

    #[test]
    fn a_variable_outside_the_list_is_not_kept() {
        let kept = chosen(&[("AWS_SECRET_ACCESS_KEY", "x"), ("HOME", "/home/someone"), ("OMP_NUM_THREADS", "4")]);
        assert_eq!(kept.into_iter().collect::<Vec<_>>(), [("OMP_NUM_THREADS".to_owned(), "4".to_owned())]);
    }

    #[test]
    fn ordinary_settings_are_kept_as_they_are() {
        for value in [
            "0,1",
            "",
            "expandable_segments:True,max_split_size_mb:128",
            "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
            "MIG-b6b4d1a8-3f4e-5d3c-9d8e-2f1a0c9b8e7d",
            "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/0",
            "compute,utility",
            "granularity=fine,compact,1,0",
            "8.0 8.6 9.0+PTX",
            ":4096:8",
        ] {
            assert!(!looks_like_a_secret(value), "{value}");
        }
    }

    #[test]
    fn what_looks_like_a_secret_is_withheld_and_noted() {
        for value in [
            "hf_short1",
            "https://user:password@example.com",
            "c2VjcmV0LXRva2VuLXZhbHVlLTEyMzQ1Njc4OTA=",
            "0123456789abcdef0123456789abcdef",
            "INFO,token=abcdefghij1234567890klmnop",
        ] {
            let (kept, notes) = choose([("NCCL_DEBUG".to_owned(), value.to_owned())]);
            assert_eq!(kept["NCCL_DEBUG"], WITHHELD, "{value}");
            assert_eq!(notes, ["the value of NCCL_DEBUG was withheld because it looks like a secret"]);
        }
    }

    #[test]
    fn the_list_is_sorted_and_names_nothing_twice() {
        assert!(ALLOWED.is_sorted_by(|left, right| left < right));
    }
}
