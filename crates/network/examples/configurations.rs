//! What becomes of configurations: one line of JSON for each line `{"name": ..., "config": {...}}` of standard input.
//!
//! `tools/configurations.py` runs it over every configuration class of transformers.

use std::io::BufRead;

use llm_perf_network::Model;
use llm_perf_network::config::ConfigFile;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        let name = case["name"].as_str().unwrap_or("config.json");
        println!("{}", outcome(name, &case["config"].to_string()));
    }
    Ok(())
}

fn outcome(name: &str, config: &str) -> Value {
    let file = match ConfigFile::from_json(name, config) {
        Ok(file) => file,
        Err(error) => return json!({"name": name, "error": error.problem.to_string()}),
    };
    let part_of = file.config.decoder().and_then(|decoder| decoder.part_of.clone());
    let cache = |model: &Model| model.cache().map(|cache| cache.elements_per_token());
    let model = Model::new(&file.config);
    json!({
        "name": name,
        "class": file.config.facts().class,
        "parameters": model.blueprint().parameters_under(""),
        "cache": cache(&model),
        "part_of": part_of,
        "assumed": file.assumed,
    })
}
