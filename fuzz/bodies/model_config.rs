//! A Hugging Face `config.json`: any text is read or refused with the name of the file, and a network that is read can be built and
//! priced, or its workload is refused.

use meter::{WorkloadSettings, predict};
use network::Model;
use network::config::ModelConfig;

/// Deeper networks are built and not priced: their layers are priced alike.
const PRICED_LAYERS: u64 = 100;

/// What must hold for any input; whether it was read.
pub(crate) fn check(text: &str) -> bool {
    let config = match ModelConfig::from_json("config.json", text) {
        Ok(config) => config,
        Err(error) => {
            assert!(error.to_string().starts_with("config.json"));
            return false;
        }
    };
    let facts = config.facts();
    assert!(!facts.class.is_empty());
    let model = Model::new(&config);
    assert!(model.blueprint().modules().len() > 0);
    if facts.layers <= PRICED_LAYERS
        && let Ok(workload) = settings(&model).resolve(&model, config.dtype())
        && let Ok(prediction) = predict(&model, &workload)
    {
        let _ = (prediction.prefill.total(), prediction.decode.map(|decode| decode.total()));
    }
    true
}

fn settings(model: &Model) -> WorkloadSettings {
    let (prompt, new) = if model.takes_tokens() { (37, 3) } else { (0, 0) };
    WorkloadSettings { base_size: Some(640), image_size: Some(640), ..WorkloadSettings::of_text(prompt, new) }
}
