//! Pictures of a run's inputs, each with its name and size.

use std::fmt::Write;

use base64::prelude::{BASE64_STANDARD, Engine};
use types::view::RunView;

use crate::render::escape::escape;
use crate::words::number::grouped;

/// A small picture of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thumbnail {
    /// The input, as in `inputs[].name` of the metrics.
    pub input: String,
    /// The file.
    pub jpeg: Vec<u8>,
}

/// What a JPEG file starts with.
const JPEG: [u8; 3] = [0xff, 0xd8, 0xff];

/// The pictures as a list; absent where there is none.
pub(super) fn gallery(run: &RunView<'_>, thumbnails: &[Thumbnail]) -> Option<String> {
    let mut list = "<ul class=\"inputs\">\n".to_owned();
    let mut shown = false;
    for Thumbnail { input, jpeg } in thumbnails.iter().filter(|one| one.jpeg.starts_with(&JPEG)) {
        let facts = run.metrics.conditions.inputs.iter().find(|facts| facts.name == *input);
        let mut words = vec![escape(input)];
        if let Some(facts) = facts {
            words.extend(facts.width.zip(facts.height).map(|(width, height)| format!("{width} x {height} pixels")));
            words.extend(
                Some(format!("{} prompt tokens", grouped(facts.prompt_tokens))).filter(|_| facts.prompt_tokens > 0),
            );
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            list,
            "<li><img src=\"data:image/jpeg;base64,{}\" alt=\"\"><span>{}</span></li>",
            BASE64_STANDARD.encode(jpeg),
            words.join("<br>")
        );
        shown = true;
    }
    shown.then(|| list + "</ul>\n")
}
