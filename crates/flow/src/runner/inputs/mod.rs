//! The inputs of a run: found, hashed, measured, chosen.

mod dataset;
mod files;
pub(crate) mod plan;
pub(crate) mod prepare;

use engine::image::{self, Page};
use types::{Bytes, InputImage, InputPrompt, InputSet, Random, SchemaTag, UserError};

use super::error::no_usable_inputs;
use super::settings::{InferSettings, TEXT_MARK};
pub(crate) use files::built_in_pages;

pub use dataset::{DatasetSettings, SamplingSettings};
use files::DatasetFile;

use crate::pipeline::folder::thumbnails;
use crate::pipeline::recorded::provenance::FedInputs;

/// What `inputs.yaml` calls the root of random inputs.
const SYNTHETIC: &str = "synthetic";

/// What it calls the root of a prompt that stands in the configuration.
const CONFIGURATION: &str = "config";

/// All inputs, and where they come from.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// Folder, `builtin:NAME`, `config` or `synthetic`.
    pub(crate) root: String,
    pub(crate) file_list: Option<String>,
    pub(crate) all: Vec<Input>,
}

/// One input, in memory.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) category: Option<String>,
    pub(crate) bytes: Option<Bytes>,
    pub(crate) sha256: Option<String>,
    pub(crate) content: Content,
    /// Whether the run measures it.
    pub(crate) used: bool,
    /// Why it cannot be used.
    pub(crate) problem: Option<String>,
}

/// What an input consists of.
#[derive(Debug)]
pub(crate) enum Content {
    /// An image file, with its size where the header tells.
    Image { file: Vec<u8>, page: Option<Page> },
    /// A text, and how many tokens the prompt around it has, once that is known.
    Text { text: String, tokens: Option<u64> },
    /// Random tokens.
    Tokens { count: u64, seed: u64 },
    /// Random images.
    Pictures { count: u32, side: u64, seed: u64 },
}

/// Every input that the settings ask for, usable or not; at least one.
pub(crate) fn find(dataset: &DatasetSettings, infer: &InferSettings) -> Result<Inputs, UserError> {
    let made = |root: &str, input: Input| Inputs { root: root.to_owned(), file_list: None, all: vec![input] };
    let read: fn(DatasetFile) -> Input = match infer {
        InferSettings::Pictures(settings) => {
            let (count, side, seed) = (settings.batch, settings.image_size, settings.seed);
            let name = format!("{count} random {side} x {side}");
            let content = Content::Pictures { count, side, seed };
            return Ok(made(SYNTHETIC, Input::new(name, format!("{SYNTHETIC}:seed={seed}"), content)));
        }
        InferSettings::Prompts(settings, _) => match (settings.seq_len, settings.seed) {
            (Some(count), seed) => {
                let path = format!("{SYNTHETIC}:seed={seed}");
                let input = Input::new(format!("{count} random tokens"), path, Content::Tokens { count, seed });
                return Ok(made(SYNTHETIC, input));
            }
            (None, _) if !settings.prompt.contains(TEXT_MARK) => {
                let content = Content::Text { text: String::new(), tokens: None };
                let input = Input::new("prompt".to_owned(), format!("{CONFIGURATION}:infer.prompt"), content);
                let text = settings.prompt.as_bytes();
                let (bytes, sha256) = (Some(Bytes::new(text.len() as u64)), Some(collect::run::sha256(text)));
                return Ok(made(CONFIGURATION, Input { bytes, sha256, ..input }));
            }
            (None, _) => Input::text,
        },
        InferSettings::Pages(..) => Input::image,
    };
    let all: Vec<Input> = files::find(dataset)?.into_iter().map(read).collect();
    let root = dataset.root.display().to_string();
    if all.is_empty() {
        let patterns = dataset.include.join(", ");
        return Err(UserError::usage(format!("no file under {root} matches {patterns}")).hint(
            "use PNG or JPEG files for models that read pages, and text files for others; --inputs takes a folder, a \
             file or a pattern",
        ));
    }
    let file_list = dataset.file_list.as_ref().map(|file| file.display().to_string());
    Ok(Inputs { root, file_list, all })
}

/// What a run of these settings is fed, before anything runs: an input that turns out to be broken later still counts as used.
pub fn expected(dataset: &DatasetSettings, infer: &InferSettings) -> Result<FedInputs, UserError> {
    let mut inputs = find(dataset, infer)?;
    let usable = inputs.usable()?;
    for index in (0..dataset.sampling.epochs).flat_map(|epoch| choose(&dataset.sampling, &usable, epoch)) {
        inputs.all[index].used = true;
    }
    Ok(inputs.fed())
}

/// The inputs of one epoch, as indices; the same seed and epoch give the same.
pub(crate) fn choose(settings: &SamplingSettings, usable: &[usize], epoch: u32) -> Vec<usize> {
    let mut order = usable.to_vec();
    if settings.shuffle {
        let mut random = Random::new(settings.seed ^ (u64::from(epoch) << 32));
        for index in (1..order.len()).rev() {
            order.swap(index, (random.number() % (index as u64 + 1)) as usize);
        }
    }
    order.truncate(settings.samples_per_epoch.unwrap_or(usize::MAX));
    order
}

impl Inputs {
    /// Those that nothing is known to be wrong with, as indices; at least one.
    pub(crate) fn usable(&self) -> Result<Vec<usize>, UserError> {
        let fine = |(index, input): (usize, &Input)| input.problem.is_none().then_some(index);
        let usable: Vec<usize> = self.all.iter().enumerate().filter_map(fine).collect();
        if usable.is_empty() {
            let problem = self.all.iter().find_map(|input| input.problem.clone()).unwrap_or_default();
            return Err(no_usable_inputs(self.all.len(), &problem));
        }
        Ok(usable)
    }

    /// What was wrong with those that could not be used.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.all.iter().filter_map(|input| input.problem.clone()).collect()
    }

    /// The document of these inputs, and small pictures of the images that were used. What cannot be drawn has none: the run does
    /// not need it.
    pub(crate) fn fed(&self) -> FedInputs {
        FedInputs { document: self.document(), thumbnails: self.thumbnails() }
    }

    fn thumbnails(&self) -> Vec<(String, Vec<u8>)> {
        let drawn = |input: &Input| match &input.content {
            Content::Image { file, .. } => {
                let name = thumbnails::file(input.sha256.as_deref()?);
                Some((name, image::thumbnail(&input.name, file).ok()?))
            }
            _ => None,
        };
        self.all.iter().filter(|input| input.used).filter_map(drawn).take(thumbnails::MOST).collect()
    }

    /// The document of these inputs.
    pub(crate) fn document(&self) -> InputSet {
        InputSet {
            schema: SchemaTag::new(),
            dataset_root: self.root.clone(),
            subset_filelist: self.file_list.clone(),
            count: self.all.len() as u64,
            images: self.all.iter().filter_map(Input::as_image).collect(),
            prompts: self.all.iter().filter_map(Input::as_prompt).collect(),
            command: None,
            files: Vec::new(),
        }
    }
}

impl Input {
    pub(crate) fn new(name: String, path: String, content: Content) -> Self {
        Self { name, path, category: None, bytes: None, sha256: None, content, used: false, problem: None }
    }

    /// An image file; its header is read, its pixels are not.
    fn image(found: DatasetFile) -> Self {
        let measured = |name: &str, file: Vec<u8>| match image::measure(name, &file) {
            Ok(page) => (Content::Image { file, page: Some(page) }, None),
            Err(error) => (Content::Image { file: Vec::new(), page: None }, Some(error.to_string())),
        };
        Self::of_file(found, measured)
    }

    /// A text file.
    fn text(found: DatasetFile) -> Self {
        let decoded = |name: &str, file: Vec<u8>| {
            let (text, problem) = match String::from_utf8(file) {
                Ok(text) if text.trim().is_empty() => (String::new(), Some(format!("{name} is empty"))),
                Ok(text) => (text, None),
                Err(error) => {
                    let at = error.utf8_error().valid_up_to();
                    (String::new(), Some(format!("{name} is not UTF-8 text: invalid byte at {at}")))
                }
            };
            (Content::Text { text, tokens: None }, problem)
        };
        Self::of_file(found, decoded)
    }

    fn of_file(found: DatasetFile, read: impl FnOnce(&str, Vec<u8>) -> (Content, Option<String>)) -> Self {
        let DatasetFile { name, path, category, content } = found;
        let unreadable = content.as_ref().err().map(|error| format!("cannot read {path}: {error}"));
        let file = content.unwrap_or_default();
        let hashed = unreadable.is_none().then(|| (Bytes::new(file.len() as u64), collect::run::sha256(&file)));
        let (bytes, sha256) = hashed.unzip();
        let (content, problem) = read(&name, file);
        Self { name, path, category, bytes, sha256, content, used: false, problem: unreadable.or(problem) }
    }

    fn as_image(&self) -> Option<InputImage> {
        let side = match &self.content {
            Content::Image { page, .. } => page.map(|page| [page.width, page.height].map(u64::from)),
            Content::Pictures { side, .. } => Some([*side, *side]),
            Content::Text { .. } | Content::Tokens { .. } => return None,
        };
        Some(InputImage {
            name: self.name.clone(),
            path: self.path.clone(),
            width: side.map(|[width, _]| width),
            height: side.map(|[_, height]| height),
            bytes: self.bytes,
            sha256: self.sha256.clone(),
            category: self.category.clone(),
            used: self.used,
            problem: self.problem.clone(),
        })
    }

    fn as_prompt(&self) -> Option<InputPrompt> {
        let tokens = match &self.content {
            Content::Text { tokens, .. } => *tokens,
            Content::Tokens { count, .. } => Some(*count),
            Content::Image { .. } | Content::Pictures { .. } => return None,
        };
        Some(InputPrompt {
            name: self.name.clone(),
            path: self.path.clone(),
            tokens,
            bytes: self.bytes,
            sha256: self.sha256.clone(),
            category: self.category.clone(),
            used: self.used,
            problem: self.problem.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::settings::{DecodingSettings, PageSettings, PictureSettings, PromptSettings};

    fn dataset() -> DatasetSettings {
        let sampling = SamplingSettings {
            epochs: 1,
            samples_per_epoch: None,
            seed: 0,
            shuffle: true,
            warmup_rounds: 0,
            repeats: 1,
        };
        DatasetSettings {
            root: "builtin:prompts".into(),
            include: vec!["*.txt".to_owned()],
            exclude: Vec::new(),
            file_list: None,
            recursive: true,
            sampling,
        }
    }

    fn decoding() -> DecodingSettings {
        DecodingSettings {
            batch: 1,
            logits: types::LogitsKind::All,
            max_new_tokens: 1,
            temperature: 0.0,
            top_p: 1.0,
            no_repeat_ngram_size: 0,
            attention: "eager".to_owned(),
        }
    }

    fn prompts(prompt: &str, seq_len: Option<u64>) -> InferSettings {
        InferSettings::Prompts(PromptSettings { prompt: prompt.to_owned(), seq_len, seed: 7 }, decoding())
    }

    #[test]
    fn pages_that_will_be_read_have_their_pictures_before_anything_runs() {
        let mut pages = DatasetSettings { root: "builtin:pages".into(), include: vec!["*".to_owned()], ..dataset() };
        pages.sampling.samples_per_epoch = Some(1);
        let prompt = "<image>".to_owned();
        let settings =
            PageSettings { base_size: 64, image_size: 64, crop_mode: false, min_tiles: 1, max_tiles: 1, prompt };
        let fed = expected(&pages, &InferSettings::Pages(settings, decoding())).unwrap();
        let used: Vec<_> = fed.document.images.iter().filter(|image| image.used).collect();
        let [(file, jpeg)] = fed.thumbnails.as_slice() else { panic!("one page, one picture: {:?}", fed.document) };
        assert_eq!((used.len(), file), (1, &thumbnails::file(used[0].sha256.as_deref().unwrap())));
        assert!(image::measure("picture", jpeg).unwrap().width <= 160);
    }

    #[test]
    fn the_settings_decide_where_inputs_come_from() {
        let roots = [
            prompts("Read: <text>", None),
            prompts("Hello", None),
            prompts("<text>", Some(9)),
            InferSettings::Pictures(PictureSettings { batch: 2, image_size: 8, iterations: 1, seed: 3 }),
        ]
        .map(|infer| {
            let found = find(&dataset(), &infer).unwrap();
            (found.root.clone(), found.all.len(), found.document().prompts.len())
        });
        let expected = [("builtin:prompts", 3, 3), ("config", 1, 1), ("synthetic", 1, 1), ("synthetic", 1, 0)];
        assert_eq!(roots, expected.map(|(root, all, prompts)| (root.to_owned(), all, prompts)));
    }

    #[test]
    fn another_epoch_takes_another_order_and_the_same_seed_the_same() {
        let settings = dataset().sampling;
        let usable: Vec<usize> = (0..20).collect();
        let first = choose(&settings, &usable, 0);
        assert_eq!(first, choose(&settings, &usable, 0));
        assert_ne!(first, choose(&settings, &usable, 1));
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, usable);
    }
}
