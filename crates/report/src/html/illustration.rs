//! Pictures in `report.md`: those that a reader of a pull request would rather look at than read, below the headings of the
//! tables that they are drawn from.
//!
//! The page beside it has every picture already, and leaves these out.

use std::fmt::Write;

use super::picture::Picture;

/// The folder of the pictures, beside `report.md`.
const FOLDER: &str = "charts";

/// Sections of the page whose pictures are shown, and the words of the heading that they stand below.
const PLACES: [(&str, &str); 4] = [
    ("stages", "Per-Stage Timings"),
    ("device-time", "Device Time"),
    ("lost-time", "Lost Time"),
    ("roofline", "MFU and MBU"),
];

/// The report with its pictures, and those pictures with their files.
pub fn illustrated(report: &str, pictures: &[Picture]) -> (String, Vec<(String, String)>) {
    let (mut text, mut files) = (String::with_capacity(report.len()), Vec::new());
    for line in report.lines() {
        text += line;
        text.push('\n');
        let heading = line.strip_prefix("## ").map(|words| words.split('(').next().unwrap_or_default().trim());
        let Some((id, _)) = PLACES.iter().find(|(_, words)| heading.is_some_and(|it| it.eq_ignore_ascii_case(words)))
        else {
            continue;
        };
        for picture in pictures.iter().filter(|picture| picture.id == *id) {
            let file = format!("{FOLDER}/{}", picture.file_name());
            let title = match picture.caption.is_empty() {
                true => picture.title.to_owned(),
                false => format!("{}, {}", picture.title, picture.caption),
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n![{}]({file})\n", title.replace(['[', ']'], ""));
            files.push((file, picture.file()));
        }
    }
    (text, files)
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
        let report = "# A run\n\n## Per-stage timings (measured)\n\n| a |\n\n## Lost time\n\ntext\n";
        let pictures =
            [picture("stages", ""), picture("lost-time", "decode"), picture("roofline", ""), picture("treemap", "")];
        let (text, files) = illustrated(report, &pictures);
        let expected = "# A run\n\n## Per-stage timings (measured)\n\n![Title](charts/stages.svg)\n\n| a |\n\n\
                        ## Lost time\n\n![Title, decode](charts/lost-time-decode.svg)\n\ntext\n";
        assert_eq!(text, expected);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["charts/stages.svg", "charts/lost-time-decode.svg"]);
        assert!(files.iter().all(|(_, svg)| svg.starts_with("<svg ") && svg.contains("<style>")));
    }
}
