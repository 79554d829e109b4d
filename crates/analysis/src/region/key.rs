//! What a region is known by: its domain, its kind, and the names from the outermost range in.

use std::sync::Arc;

use types::RegionStyle;

/// The identity of a region in every process, on every device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionKey {
    /// NVTX domain; absent for the default domain.
    pub domain: Option<Arc<str>>,
    /// What kind of range it is.
    pub style: RegionStyle,
    /// Names from the outermost range to this one. A name may contain anything, `::` too.
    pub segments: Vec<Arc<str>>,
}

impl RegionKey {
    /// `[domain@]A::A1`, for display.
    pub fn path(&self) -> String {
        let domain = self.domain.as_deref().map(|domain| format!("{domain}@")).unwrap_or_default();
        let names: Vec<&str> = self.segments.iter().map(|name| &**name).collect();
        domain + &names.join("::")
    }

    /// The region around this one.
    pub fn parent(&self) -> Option<Self> {
        let around = self.segments.len().checked_sub(1).filter(|left| *left > 0)?;
        Some(Self { segments: self.segments[..around].to_vec(), ..self.clone() })
    }

    /// Whether this region lies inside `other`, or is it.
    pub fn is_within(&self, other: &Self) -> bool {
        (&self.domain, self.style) == (&other.domain, other.style) && self.segments.starts_with(&other.segments)
    }
}

#[cfg(test)]
pub(super) fn key(path: &str) -> RegionKey {
    let (domain, names) = path.split_once('@').map_or((None, path), |(domain, names)| (Some(domain), names));
    RegionKey {
        domain: domain.map(Arc::from),
        style: RegionStyle::PushPop,
        segments: names.split('/').map(Arc::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_knows_its_path_and_what_is_around_it() {
        let inner = key("LLM@A/A1");
        assert_eq!((inner.path().as_str(), inner.parent()), ("LLM@A::A1", Some(key("LLM@A"))));
        assert_eq!(key("A").parent(), None);
        assert!(inner.is_within(&key("LLM@A")) && inner.is_within(&inner));
        assert!(!inner.is_within(&key("A")) && !key("AA").is_within(&key("A")));
    }
}
