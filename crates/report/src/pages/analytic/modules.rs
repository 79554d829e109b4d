//! Which modules to show: few enough to read, fine enough to act on.
//!
//! Layers that repeat are shown together by role and class (`model.layers.*.mlp`), because nobody optimises layer 7 alone.
//! Whatever holds more than a quarter of the time is opened until what is left would fall apart into single operators.

use std::collections::HashMap;

use types::{AnalyticReport, Bytes, Flops, ModuleMetrics, RepetitionKind};

use crate::words::number::count;

/// Modules of one role and class, their parts included.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModuleRole {
    /// Path, with `*` for modules that repeat; no two have the same.
    pub(crate) name: String,
    /// Class of the modules, that of its elements for a list; absent where different ones are gathered.
    pub(crate) class: Option<String>,
    /// Roofline time.
    pub(crate) time_ms: f64,
    /// Matrix and vector operations.
    pub(crate) flops: Flops,
    /// Bytes moved.
    pub(crate) bytes: Bytes,
}

/// A module with a larger share of the time than this is shown by its parts.
const OPEN_ABOVE: f64 = 0.25;

/// Roles by time, longest first: at most `most`, then one line for all others. Together they are the whole model.
pub(crate) fn by_time(report: &AnalyticReport, most: usize) -> Vec<ModuleRole> {
    let tree = Tree::new(report);
    let Some(root) = tree.nodes.iter().position(|node| node.parent.is_none()) else {
        return Vec::new();
    };
    let whole = tree.time(&[root]);
    let mut closed = Vec::new();
    let mut open = vec![Group { name: String::new(), class: tree.nodes[root].class, members: vec![root] }];
    while let Some(group) = open.pop() {
        let deep = group.members.iter().any(|member| tree.nodes[*member].height > 1);
        let opens = group.name.is_empty() || (deep && tree.time(&group.members) > OPEN_ABOVE * whole);
        if opens && group.members.iter().any(|member| !tree.nodes[*member].children.is_empty()) {
            closed.extend(tree.own(&group));
            open.extend(tree.parts(&group));
        } else {
            closed.push(tree.role(&group));
        }
    }
    closed.retain(|role| role.time_ms > 0.0);
    tell_apart(&mut closed);
    closed.sort_by(|a, b| b.time_ms.total_cmp(&a.time_ms).then_with(|| a.name.cmp(&b.name)));
    if closed.len() > most {
        let rest = closed.split_off(most);
        closed.push(ModuleRole {
            name: count(rest.len() as u64, "other"),
            class: None,
            time_ms: rest.iter().map(|role| role.time_ms).sum(),
            flops: rest.iter().map(|role| role.flops).sum(),
            bytes: rest.iter().map(|role| role.bytes).sum(),
        });
    }
    closed
}

/// Adds the class to a name that another line has too, or seems to be inside of.
fn tell_apart(roles: &mut [ModuleRole]) {
    let names: Vec<String> = roles.iter().map(|role| role.name.clone()).collect();
    for (index, role) in roles.iter_mut().enumerate() {
        let own = names[index].as_str();
        let confused =
            |other: &str| other.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let others = names.iter().enumerate().filter(|(other, _)| *other != index);
        if let (Some(class), true) = (&role.class, others.map(|(_, name)| name.as_str()).any(confused)) {
            role.name = format!("{} ({class})", role.name);
        }
    }
}

/// Modules of one role and class.
struct Group<'a> {
    name: String,
    class: &'a str,
    members: Vec<usize>,
}

struct Node<'a> {
    id: &'a str,
    name: &'a str,
    class: &'a str,
    repeats: bool,
    parent: Option<usize>,
    children: Vec<usize>,
    /// Levels of modules below; lists do not count.
    height: usize,
    metrics: Option<&'a ModuleMetrics>,
}

struct Tree<'a> {
    nodes: Vec<Node<'a>>,
}

impl<'a> Tree<'a> {
    fn new(report: &'a AnalyticReport) -> Self {
        let metrics: HashMap<&str, &ModuleMetrics> =
            report.module_metrics.iter().map(|metrics| (metrics.module_id.as_str(), metrics)).collect();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut nodes: Vec<Node<'a>> = Vec::with_capacity(report.modules.len());
        for (index, module) in report.modules.iter().enumerate() {
            // Parents stand before their children, so a parent that is not there yet is none.
            let parent = module.parent_id.as_deref().and_then(|parent| places.get(parent)).copied();
            if let Some(parent) = parent {
                nodes[parent].children.push(index);
            }
            places.insert(&module.module_id, index);
            nodes.push(Node {
                id: &module.module_id,
                name: &module.name,
                class: class_name(&module.qualified_class_name),
                repeats: module.repetition != RepetitionKind::None,
                parent,
                children: Vec::new(),
                height: 0,
                metrics: metrics.get(module.module_id.as_str()).copied(),
            });
        }
        for index in (0..nodes.len()).rev() {
            let height = nodes[index].height;
            if let Some(parent) = nodes[index].parent.and_then(|parent| nodes.get_mut(parent)) {
                parent.height = parent.height.max(if parent.repeats { height } else { height + 1 });
            }
        }
        Self { nodes }
    }

    fn sum<T: std::iter::Sum>(&self, members: &[usize], part: impl Fn(&ModuleMetrics) -> T) -> T {
        members.iter().filter_map(|member| self.nodes[*member].metrics).map(part).sum()
    }

    fn time(&self, members: &[usize]) -> f64 {
        self.sum(members, |metrics| metrics.total_time_ms)
    }

    fn flops(&self, members: &[usize]) -> Flops {
        self.sum(members, |metrics| metrics.flops_matrix + metrics.flops_vector)
    }

    fn bytes(&self, members: &[usize]) -> Bytes {
        self.sum(members, |metrics| metrics.bytes.total())
    }

    /// The name of a group: a module that is alone has its own.
    fn name(&self, group: &Group<'_>) -> String {
        match group.members[..] {
            [only] => self.nodes[only].id.to_owned(),
            _ => group.name.clone(),
        }
    }

    /// The class of a group; a list is what it holds.
    fn class(&self, group: &Group<'_>) -> Option<String> {
        let mut node = &self.nodes[*group.members.first()?];
        while let (true, Some(element)) = (node.repeats, node.children.first()) {
            node = &self.nodes[*element];
        }
        Some(node.class.to_owned())
    }

    fn role(&self, group: &Group<'_>) -> ModuleRole {
        let members = &group.members;
        ModuleRole {
            name: self.name(group),
            class: self.class(group),
            time_ms: self.time(members),
            flops: self.flops(members),
            bytes: self.bytes(members),
        }
    }

    /// What the modules do themselves, without their parts; absent where that is nothing.
    fn own(&self, group: &Group<'_>) -> Option<ModuleRole> {
        let time_ms: f64 = self.sum(&group.members, |metrics| metrics.self_time_ms);
        let parts: Vec<usize> = group.members.iter().flat_map(|member| self.nodes[*member].children.clone()).collect();
        let (flops, bytes) = (self.flops(&group.members), self.bytes(&group.members));
        // The parts are in the sum of the whole, so nothing is lost here.
        let flops = Flops::new(flops.get().saturating_sub(self.flops(&parts).get()));
        let bytes = Bytes::new(bytes.get().saturating_sub(self.bytes(&parts).get()));
        let name = format!("{} (self)", self.name(group));
        (time_ms > 0.0).then(|| ModuleRole { name, class: self.class(group), time_ms, flops, bytes })
    }

    /// The parts of a group by role and class.
    fn parts(&self, group: &Group<'_>) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for member in &group.members {
            let node = &self.nodes[*member];
            for child in &node.children {
                let name = if node.repeats { "*" } else { self.nodes[*child].name };
                let path = if group.name.is_empty() { name.to_owned() } else { format!("{}.{name}", group.name) };
                let alike = |known: &&mut Group<'_>| known.name == path && known.class == self.nodes[*child].class;
                match groups.iter_mut().find(alike) {
                    Some(known) => known.members.push(*child),
                    None => groups.push(Group { name: path, class: self.nodes[*child].class, members: vec![*child] }),
                }
            }
        }
        groups
    }
}

/// The class without the file that defines it.
pub(super) fn class_name(qualified: &str) -> &str {
    qualified.rsplit('.').next().unwrap_or(qualified)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::analytic::sample;

    fn names(roles: &[ModuleRole]) -> Vec<&str> {
        roles.iter().map(|role| role.name.as_str()).collect()
    }

    #[test]
    fn repeated_layers_are_shown_by_role_and_the_vision_tower_as_one() {
        let roles = by_time(&sample::report(), 12);
        assert_eq!(
            names(&roles),
            [
                "lm_head",
                "model.layers.*.mlp.experts",
                "model.layers.*.self_attn",
                "model.layers.*.mlp.shared_experts",
                "model.sam_model",
                "model.layers.0.mlp",
                "model.vision_model",
                "model.layers.*.mlp.gate",
                "model.layers.* (self)",
                "model.layers.*.input_layernorm",
                "model.embed_tokens",
                "model.projector",
            ]
        );
        assert_eq!(roles[1].class.as_deref(), Some("DeepseekV2MLP"));
        assert_eq!(roles[2].class.as_deref(), Some("LlamaAttention"));
    }

    #[test]
    fn layers_of_different_classes_stay_apart() {
        let roles = by_time(&sample::report(), 12);
        // Two layers mix experts and are opened, the other is dense and shown whole.
        let dense = roles.iter().find(|role| role.name == "model.layers.0.mlp").unwrap();
        assert_eq!((dense.class.as_deref(), dense.time_ms), (Some("DeepseekV2MLP"), 2.0));
    }

    #[test]
    fn lines_that_could_be_confused_are_told_apart_by_their_class() {
        let mut roles = ["a.*", "a.*", "d", "e.*", "e.*.f", "e.*g"].map(|name| ModuleRole {
            name: name.to_owned(),
            class: Some("X".to_owned()),
            time_ms: 1.0,
            flops: Flops::ZERO,
            bytes: Bytes::ZERO,
        });
        roles[1].class = Some("Y".to_owned());
        tell_apart(&mut roles);
        assert_eq!(names(&roles), ["a.* (X)", "a.* (Y)", "d", "e.* (X)", "e.*.f", "e.*g"]);
    }

    #[test]
    fn the_lines_add_up_to_the_model_however_many_are_shown() {
        let report = sample::report();
        let root = &report.module_metrics[0];
        for most in [0, 1, 5, 100] {
            let roles = by_time(&report, most);
            assert!(roles.len() <= most + 1);
            let time: f64 = roles.iter().map(|role| role.time_ms).sum();
            assert!((time - root.total_time_ms).abs() < 1e-9 * root.total_time_ms, "{time}");
            assert_eq!(roles.iter().map(|role| role.flops).sum::<Flops>(), root.flops_matrix + root.flops_vector);
            assert_eq!(roles.iter().map(|role| role.bytes).sum::<Bytes>(), root.bytes.total());
        }
    }

    #[test]
    fn a_report_without_modules_or_without_time_has_no_lines() {
        let mut report = sample::report();
        report.module_metrics.clear();
        assert_eq!(by_time(&report, 5), []);
        report.modules.clear();
        assert_eq!(by_time(&report, 5), []);
    }
}
