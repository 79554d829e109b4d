//! Traces as a table: CSV with the header `time_s,input_tokens,output_tokens`, times in seconds.

use super::{Place, Replay, places, replay};
use crate::{Ask, LoadError, Prompt};

/// As errors call it.
const FORMAT: &str = "CSV trace";
/// The columns.
const HEADER: [&str; 3] = ["time_s", "input_tokens", "output_tokens"];
/// What to do about a table with others.
const FIX: &str =
    "start the file with the line `time_s,input_tokens,output_tokens`, and give three numbers on each line";

/// Reads a table. Requests are sorted by time.
pub fn csv(bytes: &[u8]) -> Result<Replay, LoadError> {
    let mut rows = places(FORMAT, bytes);
    let Some((place, header)) = rows.next() else { return Err(LoadError::Empty { format: FORMAT }) };
    if cells(place, header)? != HEADER {
        return Err(place.wrong(format!("the header is `{}`", String::from_utf8_lossy(header)), FIX));
    }
    replay(FORMAT, rows.map(|(place, row)| request(place, row)).collect::<Result<_, LoadError>>()?)
}

/// The three cells of a row.
fn cells(place: Place, row: &[u8]) -> Result<[&str; 3], LoadError> {
    let text = std::str::from_utf8(row).map_err(|_| place.wrong("not UTF-8", FIX))?;
    let cells: Vec<&str> = text.split(',').map(|cell| cell.trim().trim_matches('"')).collect();
    <[&str; 3]>::try_from(cells).map_err(|cells| place.wrong(format!("{} columns instead of 3", cells.len()), FIX))
}

/// The request of a row.
fn request(place: Place, row: &[u8]) -> Result<(types::Nanos, Ask), LoadError> {
    let cells = cells(place, row)?;
    let number = |column: usize| -> Result<f64, LoadError> {
        let wrong = |_| place.wrong(format!("`{}` is `{}`", HEADER[column], cells[column]), FIX);
        cells[column].parse().map_err(wrong)
    };
    let time = place.time(HEADER[0], number(0)?, 1e9)?;
    let prompt = Prompt::Random(place.tokens(HEADER[1], number(1)?)?);
    Ok((time, Ask { prompt, max_tokens: place.tokens(HEADER[2], number(2)?)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, Prompts};
    use types::Nanos;

    #[test]
    fn a_table_is_read_and_sorted() {
        let read = csv(b"\xef\xbb\xbftime_s, input_tokens,output_tokens\r\n2.5,10,3\r\n1,20,\"4\"\r\n").unwrap();
        assert_eq!(read.arrivals, Arrivals::At(vec![Nanos::ZERO, Nanos::new(1_500_000_000)]));
        let ask = |length, max_tokens| Ask { prompt: Prompt::Random(length), max_tokens };
        assert_eq!(read.prompts, Prompts::Listed(vec![ask(20, 4), ask(10, 3)]));
        assert_eq!(read.disordered, Some(2));
    }

    #[test]
    fn errors_name_the_line() {
        let error =
            |rows: &str| csv(format!("time_s,input_tokens,output_tokens\n{rows}").as_bytes()).unwrap_err().to_string();
        assert_eq!(error("0,1,1\nNaN,1,1"), "line 3 of the CSV trace: `time_s` is NaN");
        assert_eq!(error("-1,1,1"), "line 2 of the CSV trace: `time_s` is -1");
        assert_eq!(error("inf,1,1"), "line 2 of the CSV trace: `time_s` is inf");
        assert_eq!(error("0,x,1"), "line 2 of the CSV trace: `input_tokens` is `x`");
        assert_eq!(error("0,1,0"), "line 2 of the CSV trace: `output_tokens` is 0");
        assert_eq!(error("0,1"), "line 2 of the CSV trace: 2 columns instead of 3");
        assert_eq!(error(""), "the CSV trace contains no requests");
        let header = csv(b"a,b,c\n").unwrap_err().to_string();
        assert_eq!(header, "line 1 of the CSV trace: the header is `a,b,c`");
        assert_eq!(csv(b"").unwrap_err().to_string(), "the CSV trace contains no requests");
    }
}
