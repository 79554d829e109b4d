//! Python frames as the torch profiler records them with stacks: `model/layers.py(120): forward`. Which of them are the
//! user's, and not the framework's or Python's own.

/// Packages that stand between a user's code and an operator.
const FRAMEWORK: &[&str] = &["torch", "functorch", "triton", "torch_tensorrt", "torch_xla"];

/// Modules of the standard library that call back into other code, by the first part of their path. Files of the standard
/// library are recorded relative to its folder, as a user's script is relative to its own.
const STANDARD: &str = include_str!("python_modules.txt");

/// Parts of an absolute path that are shown: the rest names the machine and its users.
const SHOWN_PARTS: usize = 2;

/// The part of a path that is worth showing, and whether it is relative to a folder of packages.
fn path_of(file: &str) -> Option<&str> {
    if let Some((_, inside)) = ["site-packages/", "dist-packages/"].iter().find_map(|mark| file.rsplit_once(mark)) {
        return Some(inside);
    }
    match file.starts_with('/') {
        // The standard library's own folder.
        true if file.contains("/lib/python3") => None,
        true => {
            let file = without_home(file);
            let start = file.rmatch_indices('/').nth(SHOWN_PARTS - 1).map_or(0, |(place, _)| place);
            Some(file[start..].trim_start_matches('/'))
        }
        false => Some(file.trim_start_matches("./")),
    }
}

/// A path without the folder of a user.
fn without_home(file: &str) -> &str {
    let inside = |root| file.strip_prefix(root).and_then(|rest: &str| rest.split_once('/')).map(|(_, inside)| inside);
    inside("/home/").or_else(|| inside("/Users/")).unwrap_or(file)
}

/// A Python function outside of the framework and the standard library, the user's own or a library's that calls the
/// framework, as it is shown: without the folders that lead to it. `None` for any other.
pub(crate) fn user_frame(name: &str) -> Option<String> {
    let (file, rest) = name.split_once(".py(")?;
    let is_numbered = rest.split_once("): ").is_some_and(|(line, _)| line.bytes().all(|byte| byte.is_ascii_digit()));
    let path = path_of(file).filter(|_| is_numbered && !file.contains('<'))?;
    let package = path.split('/').next().unwrap_or_default();
    let is_users = !FRAMEWORK.contains(&package) && !STANDARD.lines().any(|module| module == package);
    is_users.then(|| format!("{path}.py({rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_users_are_told_from_those_of_frameworks_and_shown_without_their_folders() {
        // Names out of recordings of transformers, SGLang, vLLM and plain scripts.
        for (name, shown) in [
            (
                "transformers/models/vit/modeling_vit.py(170): forward",
                "transformers/models/vit/modeling_vit.py(170): forward",
            ),
            ("train.py(12): main", "train.py(12): main"),
            ("/home/somebody/secret/project/train.py(12): main", "project/train.py(12): main"),
            (
                "/sgl-workspace/sglang/python/sglang/srt/layers/linear.py(1290): forward",
                "layers/linear.py(1290): forward",
            ),
            (
                "/opt/venv/lib/python3.12/site-packages/vllm/models/llama.py(210): forward",
                "vllm/models/llama.py(210): forward",
            ),
            ("/train.py(1): <module>", "train.py(1): <module>"),
            ("/home/somebody/train.py(1): <module>", "train.py(1): <module>"),
        ] {
            assert_eq!(user_frame(name).as_deref(), Some(shown));
        }
        for name in [
            "torch/nn/modules/module.py(1743): _call_impl",
            "/opt/venv/lib/python3.12/site-packages/torch/nn/functional.py(1401): dropout",
            "/usr/lib/python3.12/contextlib.py(299): helper",
            "threading.py(1032): _bootstrap",
            "multiprocessing/process.py(108): run",
            "<built-in function linear>",
            "<frozen importlib._bootstrap>(1): _find",
            "nn.Module: Linear_3",
            "<string>.py(1): x",
            "odd.py(x): y",
        ] {
            assert_eq!(user_frame(name), None);
        }
    }
}
