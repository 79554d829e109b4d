//! The document around the sections: style, script, and a policy that lets nothing else in.

use base64::prelude::{BASE64_STANDARD, Engine};
use sha2::{Digest, Sha256};

use crate::render::escape::escape;
use crate::render::html_line;

/// The style of pictures, which a file of one has too.
pub(super) const PICTURE_STYLE: &str = concat!(include_str!("palette.css"), include_str!("picture.css"));
const STYLE: &str = concat!(include_str!("palette.css"), include_str!("picture.css"), include_str!("page.css"));
/// The datum, without content, of a page whose events are served.
pub(super) const SERVER: &str = "server";
/// The files of the script, in one scope.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("time.js"),
    include_str!("canvas.js"),
    include_str!("lanes.js"),
    include_str!("panel.js"),
    include_str!("timeline.js"),
    include_str!("requests.js"),
    include_str!("page.js"),
    "})();\n"
);

/// A section of the page.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) body: String,
    /// Shown at once, or behind its title.
    pub(super) open: bool,
}

impl Section {
    /// One that is shown at once.
    pub(super) fn new(id: &'static str, title: &str, body: String) -> Self {
        Self { id, title: title.to_owned(), body, open: true }
    }

    /// A picture, where there is one, below what is seen in it.
    pub(super) fn drawn(id: &'static str, title: &str, seen: Option<String>, picture: Option<String>) -> Option<Self> {
        Some(Self::new(id, title, self::seen(seen) + &figure("", &picture?)))
    }
}

/// What is seen in a picture, in the notation of pages.
pub(super) fn seen(said: Option<String>) -> String {
    said.map(|said| format!("<p class=\"seen\">{}</p>\n", html_line(&said))).unwrap_or_default()
}

/// A picture, with a line above it where a section has several. On a phone it is wider than the page, so that keys must be able to
/// move it.
pub(super) fn figure(caption: &str, svg: &str) -> String {
    let caption =
        if caption.is_empty() { String::new() } else { format!("<figcaption>{}</figcaption>", escape(caption)) };
    format!("<figure tabindex=\"0\">{caption}{svg}</figure>\n")
}

/// The whole file. It asks for nothing: no font, no address, no picture but those it holds.
pub(super) fn document(title: &str, top: &str, sections: &[Section], data: &[(&str, String)]) -> String {
    // Pictures of inputs are in the page itself, and no other is let in.
    let has_pictures = sections.iter().any(|section| section.body.contains("<img "));
    let pictures = if has_pictures { "img-src data:; " } else { "" };
    // What is zoomed in on is asked for, where somebody serves it.
    let events = if data.iter().any(|(id, _)| *id == SERVER) { "connect-src 'self'; " } else { "" };
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; {pictures}{events}base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    let contents: String =
        sections.iter().map(|one| format!("<a href=\"#{}\">{}</a>\n", one.id, escape(&one.title))).collect();
    let body: String = sections.iter().map(section).collect();
    let data: String =
        data.iter().map(|(id, data)| format!("<template id=\"data-{id}\">{data}</template>\n")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{title}</h1>\n{top}</header>\n<nav aria-label=\"sections\">\n{contents}</nav>\n<main>\n{body}</main>\n\
         {data}<script>{SCRIPT}</script>\n</body>\n</html>\n",
        title = escape(title)
    )
}

fn section(one: &Section) -> String {
    let (id, title, body) = (one.id, escape(&one.title), &one.body);
    let open = if one.open { " open" } else { "" };
    format!(
        "<section id=\"{id}\" aria-label=\"{title}\"><details{open}><summary><h2>{title}</h2></summary>\n{body}</details></section>\n"
    )
}
