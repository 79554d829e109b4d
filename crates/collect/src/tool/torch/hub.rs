//! Where a model is on disk: a path as it is, or the name of one in the cache of the Hugging Face hub.

use std::path::{Path, PathBuf};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelLocation {
    /// A file or folder.
    Path(PathBuf),
    /// `owner/name`, found in the cache at this folder.
    Cached(PathBuf),
    /// `owner/name` in form, and not in the cache that was searched.
    NotCached(PathBuf),
    /// Neither a path nor such a name.
    Other,
}

/// Looks a model up. Nothing is fetched.
pub fn locate(model: &str) -> ModelLocation {
    find(model, &cache())
}

fn find(model: &str, cache: &Path) -> ModelLocation {
    if Path::new(model).exists() {
        return ModelLocation::Path(PathBuf::from(model));
    }
    let allowed = |part: &str| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(letter)
    };
    let parts: Vec<&str> = model.split('/').collect();
    let [owner, name] = parts[..] else { return ModelLocation::Other };
    if !allowed(owner) || !allowed(name) || model.ends_with(".json") {
        return ModelLocation::Other;
    }
    let folder = cache.join(format!("models--{owner}--{name}"));
    let main = std::fs::read_to_string(folder.join("refs/main")).unwrap_or_default();
    let named = Some(folder.join("snapshots").join(main.trim())).filter(|_| !main.trim().is_empty());
    let any = || Some(std::fs::read_dir(folder.join("snapshots")).ok()?.flatten().next()?.path());
    match named.filter(|path| path.is_dir()).or_else(any) {
        Some(snapshot) => ModelLocation::Cached(snapshot),
        None => ModelLocation::NotCached(cache.to_owned()),
    }
}

/// The cache, as the hub's own library finds it.
fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HF_HUB_CACHE").or_else(|| set("HF_HOME").map(|home| home.join("hub"))).unwrap_or_else(|| {
        let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        cache.unwrap_or_default().join("huggingface/hub")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_the_cache_at_its_main_revision() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("models--org--tiny");
        for revision in ["aaa", "bbb"] {
            std::fs::create_dir_all(folder.join("snapshots").join(revision)).unwrap();
        }
        std::fs::create_dir(folder.join("refs")).unwrap();
        std::fs::write(folder.join("refs/main"), "bbb\n").unwrap();
        assert_eq!(find("org/tiny", cache.path()), ModelLocation::Cached(folder.join("snapshots/bbb")));
        assert_eq!(find("org/other", cache.path()), ModelLocation::NotCached(cache.path().to_owned()));
    }

    #[test]
    fn paths_and_other_words_are_not_looked_up() {
        let cache = tempfile::tempdir().unwrap();
        let here = cache.path().to_str().unwrap();
        assert_eq!(find(here, Path::new("/nowhere")), ModelLocation::Path(cache.path().to_owned()));
        for other in ["llama", "a/b/c", "models/config.json", "../x", "my.module:make", "a/"] {
            assert_eq!(find(other, cache.path()), ModelLocation::Other, "{other}");
        }
    }
}
