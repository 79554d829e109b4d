//! Pictures in `report.md`: those that a reader of a pull request would rather look at than read, below the headings of the
//! tables that they are drawn from.
//!
//! The page beside it has every picture already, and leaves these out.

use super::picture::Picture;
use crate::render::{Block, Page};

/// The folder of the pictures, beside `report.md`.
const FOLDER: &str = "charts";

/// Sections of the page whose pictures are shown, and the words of the heading that they stand below.
const PLACES: [(&str, &str); 5] = [
    ("latencies", "Requests"),
    ("stages", "Per-Stage Timings"),
    ("device-time", "Device Time"),
    ("lost-time", "Lost Time"),
    ("roofline", "MFU and MBU"),
];

/// The report with its pictures, and those pictures with their files.
pub fn illustrated(report: Page, pictures: &[Picture]) -> (Page, Vec<(String, String)>) {
    let (mut blocks, mut files) = (Vec::with_capacity(report.blocks.len()), Vec::new());
    for block in report.blocks {
        let place = place(&block);
        blocks.push(block);
        for picture in pictures.iter().filter(|picture| place == Some(picture.id)) {
            let file = format!("{FOLDER}/{}", picture.file_name());
            let title = if picture.caption.is_empty() {
                picture.title.to_owned()
            } else {
                format!("{}, {}", picture.title, picture.caption)
            };
            blocks.push(Block::Chart { title, file: file.clone() });
            files.push((file, picture.file()));
        }
    }
    (Page { blocks, ..report }, files)
}

/// The section whose pictures stand below a heading.
fn place(block: &Block) -> Option<&'static str> {
    let Block::Heading { level: 2, text } = block else { return None };
    let words = text.plain();
    let words = words.split('(').next().unwrap_or_default().trim();
    PLACES.iter().find(|(_, heading)| words.eq_ignore_ascii_case(heading)).map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(id: &'static str, caption: &str) -> Picture {
        Picture {
            id,
            title: "Title",
            caption: caption.to_owned(),
            note: String::new(),
            svg: "<svg viewBox=\"0 0 1 1\"></svg>".to_owned(),
        }
    }

    #[test]
    fn pictures_stand_below_the_heading_of_their_table_and_each_has_a_file() {
        let mut report = Page::new("A run");
        report.heading("Per-stage timings (measured)");
        report.heading("Lost time");
        report.paragraph("text");
        let pictures =
            [picture("stages", ""), picture("lost-time", "decode"), picture("roofline", ""), picture("shares", "")];
        let (page, files) = illustrated(report, &pictures);
        let expected = "# A run\n\n## Per-stage timings (measured)\n\n![Title](charts/stages.svg)\n\n\
                        ## Lost time\n\n![Title, decode](charts/lost-time-decode.svg)\n\ntext\n";
        assert_eq!(page.markdown(), expected);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["charts/stages.svg", "charts/lost-time-decode.svg"]);
        assert!(files.iter().all(|(_, svg)| svg.starts_with("<svg ") && svg.contains("<style>")));
    }
}
