//! How far a repeated run is from the first, for the terminal and for a page.

use analysis::StageDifference;

use super::phrase::{indented, known, nested};
use crate::number::{UNKNOWN, milliseconds};
use crate::table::{Column, Table};

/// The difference as plain text, one line per stage.
pub fn difference_terminal(differences: &[StageDifference]) -> String {
    let mut table = Table::new(COLUMNS);
    differences.iter().for_each(|one| table.row(cells(one, indented(one.stage))));
    if table.is_empty() { NOTHING.to_owned() + "\n" } else { table.plain() }
}

/// The difference as a Markdown table.
pub fn difference_markdown(differences: &[StageDifference]) -> String {
    let mut table = Table::new(COLUMNS);
    differences.iter().for_each(|one| table.row(cells(one, nested(one.stage))));
    if table.is_empty() { NOTHING.to_owned() + "\n" } else { table.markdown() }
}

const NOTHING: &str = "neither run measured a stage";

const COLUMNS: [Column; 4] =
    [Column::text("stage"), Column::number("first"), Column::number("this run"), Column::number("difference")];

fn cells(difference: &StageDifference, name: String) -> [String; 4] {
    let share = difference.share.map(|share| format!("{:+.1}%", share * 100.0));
    [
        name,
        known(difference.first_ms.map(milliseconds)),
        known(difference.second_ms.map(milliseconds)),
        share.unwrap_or(UNKNOWN.to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use types::Stage;

    use super::*;

    #[test]
    fn differences_have_a_sign_and_missing_stages_a_dash() {
        let one = |stage, first_ms, second_ms, share| StageDifference { stage, first_ms, second_ms, share };
        let differences = [
            one(Stage::Prefill, Some(100.0), Some(103.2), Some(0.032)),
            one(Stage::Vision, Some(80.0), None, None),
            one(Stage::Decode, Some(20.0), Some(19.5), Some(-0.025)),
        ];
        insta::assert_snapshot!(difference_terminal(&differences), @r"
        stage       first  this run  difference
        prefill    100 ms    103 ms       +3.2%
          vision  80.0 ms         -           -
        decode    20.0 ms   19.5 ms       -2.5%
        ");
        assert_eq!(difference_markdown(&differences).lines().count(), 5);
        assert_eq!(difference_terminal(&[]), "neither run measured a stage\n");
    }
}
