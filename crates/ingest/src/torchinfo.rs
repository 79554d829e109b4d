//! `torchinfo-unique-layers.json`: the module classes a model is made of, as a TorchInfo snapshot lists them.
//!
//! Only what a list of target operators needs is read, and all of it is required; fields beside it are left alone.
//! Which kind of operator a class is, and whether a network covers it, is for others to say.

use std::collections::HashMap;

use types::TargetOperator;

use crate::IngestError;
use crate::json::{JsonNode, parse};

/// What a snapshot says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// When it was made, as the file says; the name of the snapshot.
    pub snapshot_id: String,
    /// The classes, in the order of the file. Their `default_category_id` is empty: a snapshot does not know it.
    pub operators: Vec<TargetOperator>,
}

/// Reads the text of a snapshot. `file_name` is only used in messages.
pub fn read(file_name: &str, text: &str) -> Result<Snapshot, IngestError> {
    let value = parse(file_name, text, "a JSON object with `layers`, as TorchInfo snapshots have")?;
    let document = JsonNode::document(file_name, &value);
    let layers = document.field("layers", "the list of classes")?.list()?;
    let count = document.field("num_unique_layers", "the number of classes")?;
    let said = count.count()?;
    if u64::try_from(layers.len()) != Ok(said) {
        return Err(count.inconsistent(format!("says {said} classes, `/layers` has {}", layers.len())));
    }
    let mut seen: HashMap<String, &str> = HashMap::new();
    let mut operators = Vec::with_capacity(layers.len());
    for layer in &layers {
        let operator = operator(layer)?;
        if let Some(first) = seen.insert(operator.class_name_qualified.clone(), layer.pointer()) {
            let name = operator.class_name_qualified;
            return Err(layer.inconsistent(format!("lists `{name}` a second time, first at `{first}`")));
        }
        operators.push(operator);
    }
    let snapshot_id = document.field("generated_at", "when the snapshot was made")?.text()?;
    Ok(Snapshot { snapshot_id, operators })
}

fn operator(layer: &JsonNode<'_>) -> Result<TargetOperator, IngestError> {
    let name = |field: &str| {
        let located = layer.field(field, "the name of a class")?;
        let name = located.text()?;
        if name.trim().is_empty() { Err(located.inconsistent("a class has no name".to_owned())) } else { Ok(name) }
    };
    let builtin = layer.field("is_torch_builtin", "whether the class is part of PyTorch")?.truth()?;
    let children = layer.field("children", "the classes of its parts")?.list()?;
    Ok(TargetOperator {
        class_name: name("class_name")?,
        class_name_qualified: name("class_name_qualified")?,
        is_pytorch_builtin: builtin,
        is_custom: !builtin,
        children_classes: children.iter().map(JsonNode::text).collect::<Result<_, _>>()?,
        default_category_id: String::new(),
    })
}
