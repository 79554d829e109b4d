//! The JSON that a request sends.

use serde::Serialize;
use serde_json::{Value, json};

use crate::plan::Plan;
use crate::prompts::{Ask, Prompt};

/// A request that is ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Body {
    /// Where it goes.
    pub(crate) path: &'static str,
    /// The JSON.
    pub(crate) json: String,
    /// Tokens of the prompt, where it consists of them.
    pub(crate) input_tokens: Option<u64>,
}

/// The fields, in the names of the OpenAI API and, for `ignore_eos`, of vLLM, SGLang, TensorRT-LLM and llama.cpp.
#[derive(Serialize)]
struct Fields<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Completed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Value>,
    max_tokens: u32,
    temperature: u32,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ignore_eos: bool,
}

/// A prompt of the completions API.
#[derive(Serialize)]
#[serde(untagged)]
enum Completed<'a> {
    Tokens(&'a [u32]),
    Text(&'a str),
}

/// What else the stream says.
#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl Body {
    /// The body of one request of a plan.
    pub(crate) fn new(plan: &Plan, index: usize) -> Self {
        let ask = plan.prompts.ask(index, plan.seed);
        let tokens = ask.prompt.tokens(&plan.vocabulary, index, plan.seed);
        let path = match ask.prompt {
            Prompt::Chat { .. } => "/v1/chat/completions",
            _ => "/v1/completions",
        };
        let fields = fields(plan, index, &ask, tokens.as_deref());
        let json = serde_json::to_string(&fields).expect("fields are numbers and text");
        Self { path, json, input_tokens: tokens.map(|tokens| tokens.len() as u64) }
    }
}

/// The fields of one request.
fn fields<'a>(plan: &'a Plan, index: usize, ask: &'a Ask, tokens: Option<&'a [u32]>) -> Fields<'a> {
    // Strict servers, to which `ignore_eos` is not sent, do not get this either.
    let name = plan.ignore_eos.then(|| format!("llm-perf-{}-{index}", plan.seed));
    let (prompt, messages) = match &ask.prompt {
        Prompt::Chat { text, images } => {
            (None, Some(json!([{"role": "user", "content": content(text, images, name.as_deref())}])))
        }
        Prompt::Text(text) => (Some(Completed::Text(text)), None),
        Prompt::Random(_) | Prompt::Blocks { .. } => (tokens.map(Completed::Tokens), None),
    };
    Fields {
        model: &plan.model,
        prompt,
        messages,
        max_tokens: ask.max_tokens,
        temperature: 0,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        ignore_eos: plan.ignore_eos,
    }
}

/// The content of a message: its images, then its text. By a name of its own vLLM takes an image for one that none of its caches knows,
/// also where another request has sent it before.
fn content(text: &str, images: &[crate::Image], name: Option<&str>) -> Value {
    if images.is_empty() {
        return json!(text);
    }
    let images = images.iter().enumerate().map(|(place, image)| {
        let mut part = json!({"type": "image_url", "image_url": {"url": image.url()}});
        if let Some(name) = name {
            part["uuid"] = json!(format!("{name}-{place}"));
        }
        part
    });
    images.chain([json!({"type": "text", "text": text})]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, Image, Lengths, Prompts, Server};

    fn plan(prompt: Prompt) -> Plan {
        let prompts = Prompts::Listed(vec![Ask { prompt, max_tokens: 5 }]);
        let server = Server::new("http://localhost:1").unwrap();
        Plan { vocabulary: 7..8, ..Plan::new(server, "m", Arrivals::Closed { concurrency: 1 }, prompts, 1) }
    }

    #[test]
    fn tokens_are_sent_as_ids() {
        let body = Body::new(&plan(Prompt::Random(3)), 0);
        let expected = concat!(
            r#"{"model":"m","prompt":[7,7,7],"max_tokens":5,"temperature":0,"stream":true,"#,
            r#""stream_options":{"include_usage":true},"ignore_eos":true}"#
        );
        assert_eq!((body.path, body.json.as_str(), body.input_tokens), ("/v1/completions", expected, Some(3)));
    }

    #[test]
    fn text_is_sent_as_text_and_ignore_eos_only_where_wanted() {
        let body = Body::new(&Plan { ignore_eos: false, ..plan(Prompt::Text("a \"b\"".to_owned())) }, 0);
        let value: Value = serde_json::from_str(&body.json).unwrap();
        assert_eq!((&value["prompt"], value.get("ignore_eos")), (&json!("a \"b\""), None));
        assert_eq!((body.path, body.input_tokens), ("/v1/completions", None));
    }

    #[test]
    fn images_precede_the_text_of_a_message() {
        let image = Image::new(&[0xff, 0xd8, 0xff]).unwrap();
        let page = Plan { ignore_eos: false, ..plan(Prompt::Chat { text: "see".to_owned(), images: vec![image] }) };
        let body = Body::new(&page, 0);
        let value: Value = serde_json::from_str(&body.json).unwrap();
        let url = json!({"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/"}});
        let expected = json!([{"role": "user", "content": [url, {"type": "text", "text": "see"}]}]);
        assert_eq!((&value["messages"], body.path), (&expected, "/v1/chat/completions"));
        let plain = Body::new(&plan(Prompt::Chat { text: "see".to_owned(), images: Vec::new() }), 0);
        assert!(plain.json.contains(r#""messages":[{"role":"user","content":"see"}]"#), "{}", plain.json);
    }

    #[test]
    fn an_image_that_is_sent_again_has_another_name() {
        let image = Image::new(&[0xff, 0xd8, 0xff]).unwrap();
        let page = plan(Prompt::Chat { text: "see".to_owned(), images: vec![image.clone(), image] });
        let names = |plan: &Plan, index| -> Vec<String> {
            let value: Value = serde_json::from_str(&Body::new(plan, index).json).unwrap();
            let parts = value["messages"][0]["content"].as_array().unwrap();
            parts.iter().filter_map(|part| Some(part["uuid"].as_str()?.to_owned())).collect()
        };
        let later = Plan { seed: 1, ..page.clone() };
        let all: Vec<_> = [names(&page, 0), names(&page, 1), names(&later, 0)].concat();
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 6, "{all:?}");
        assert_eq!(names(&page, 1), names(&page, 1));
    }

    #[test]
    fn random_lengths_follow_the_seed() {
        let prompts = Prompts::Random { input: Lengths::Uniform(1, 9), output: Lengths::Uniform(1, 9) };
        let first = Plan { prompts, ..plan(Prompt::Random(1)) };
        let second = Plan { seed: 1, ..first.clone() };
        let bodies = |plan: &Plan| (0..20).map(|index| Body::new(plan, index)).collect::<Vec<_>>();
        assert_eq!(bodies(&first), bodies(&first));
        assert_ne!(bodies(&first), bodies(&second));
    }
}
