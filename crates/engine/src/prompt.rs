//! A text and a page as one prompt.
//!
//! The mark in the text is replaced by the page's image tokens: a row of the view and a newline for each row, a separator,
//! and for tiles a row through all of them and a newline. All of them have the same id; the network puts the features of
//! the page in their places, in its own order.

use network::deepseek_ocr::image_tokens;
use types::UserError;

use crate::tokenizer::IMAGE_MARK;
use crate::{PageImages, PromptData, Tokenizer};

/// Ids of `text` with the page in the place of its `<image>`. White space around the text is dropped, as published.
pub fn build(tokenizer: &Tokenizer, text: &str, page: Option<PageImages>) -> Result<PromptData, UserError> {
    let text = text.trim();
    let marks = text.matches(IMAGE_MARK).count();
    let wrong = |what: &str| UserError::failed(format!("the prompt {text:?} {what}"));
    let mut ids = Vec::from_iter(tokenizer.bos());
    let mut places = 0..0;
    match (&page, text.split_once(IMAGE_MARK)) {
        (None, None) => ids.extend(tokenizer.encode(text)?),
        (None, Some(_)) => {
            return Err(
                wrong("has <image>, but no page is given").hint("add a page, or remove <image> from the prompt")
            );
        }
        (Some(_), None) => {
            return Err(wrong("has no <image>, so there is no place for the page")
                .hint("add <image> to the prompt where the page belongs"));
        }
        (Some(_), Some(_)) if marks > 1 => {
            let message = format!("has <image> {marks} times; only one page is allowed");
            return Err(wrong(&message).hint("keep one <image> in the prompt"));
        }
        (Some(page), Some((before, after))) => {
            let Some(image) = tokenizer.image() else {
                let message = format!("{} has no <image> token, so it cannot encode a page", tokenizer.name());
                return Err(UserError::failed(message).hint("use the tokenizer.json that belongs to the model"));
            };
            ids.extend(tokenizer.encode(before)?);
            let begin = ids.len();
            ids.resize(begin + tokens(page), image);
            places = begin..ids.len();
            ids.extend(tokenizer.encode(after)?);
        }
    }
    let image_mask = (0..ids.len()).map(|index| places.contains(&index)).collect();
    Ok(PromptData { ids, image_mask, images: page, source: None })
}

/// Tokens the page takes.
fn tokens(page: &PageImages) -> usize {
    let tile = page.tiles.as_ref().map_or(0, |tiles| tiles.side);
    let grid = if page.tiles.is_some() { page.crop_grid } else { [1, 1] };
    image_tokens(page.global.side as u64, tile as u64, grid) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ImageBatch;

    fn images(count: usize, side: usize) -> ImageBatch {
        ImageBatch { count, side, pixels: Vec::new() }
    }

    fn page(grid: [u64; 2]) -> PageImages {
        let count = (grid[0] * grid[1]) as usize;
        let tiles = (count > 1).then(|| images(count, 640));
        PageImages { global: images(1, 1024), tiles, crop_grid: grid }
    }

    fn tokenizer() -> Tokenizer {
        Tokenizer::bytes(300).unwrap()
    }

    #[test]
    fn the_mark_is_replaced_by_as_many_tokens_as_the_network_expects() {
        for grid in [[1, 1], [1, 2], [2, 3], [3, 3], [9, 1]] {
            let prompt = build(&tokenizer(), "<image>\nFree OCR. ", Some(page(grid))).unwrap();
            let wanted = image_tokens(1024, 640, grid) as usize;
            assert_eq!(prompt.image_mask.iter().filter(|masked| **masked).count(), wanted, "{grid:?}");
            // Start, image tokens, then "\nFree OCR." without the space at the end.
            assert_eq!(prompt.ids.len(), 1 + wanted + 10);
            assert_eq!(prompt.image_mask.len(), prompt.ids.len());
        }
    }

    #[test]
    fn image_tokens_stand_where_the_mark_stood() {
        let prompt = build(&tokenizer(), "Read <image> now", Some(page([1, 1]))).unwrap();
        assert_eq!(prompt.ids[0], 0);
        assert!(prompt.ids.iter().zip(&prompt.image_mask).all(|(id, masked)| (*id == 299) == *masked));
        assert_eq!(prompt.image_mask.iter().position(|masked| *masked), Some(1 + 5));
        assert_eq!(tokenizer().decode(&prompt.ids).unwrap(), "Read  now");
    }

    #[test]
    fn a_text_alone_has_no_image_tokens() {
        let prompt = build(&tokenizer(), "Hi", None).unwrap();
        assert_eq!(
            prompt,
            PromptData { ids: vec![0, 3 + 72, 3 + 105], image_mask: vec![false; 3], images: None, source: None }
        );
    }

    #[test]
    fn a_page_without_a_mark_and_a_mark_without_a_page_are_errors() {
        let error = build(&tokenizer(), "Free OCR.", Some(page([1, 1]))).unwrap_err();
        assert_eq!(error.to_string(), r#"the prompt "Free OCR." has no <image>, so there is no place for the page"#);
        let error = build(&tokenizer(), "<image>\nFree OCR.", None).unwrap_err();
        assert_eq!(error.to_string(), r#"the prompt "<image>\nFree OCR." has <image>, but no page is given"#);
        let error = build(&tokenizer(), "<image> <image>", Some(page([1, 1]))).unwrap_err();
        assert_eq!(error.to_string(), r#"the prompt "<image> <image>" has <image> 2 times; only one page is allowed"#);
        assert_eq!(error.hints, ["keep one <image> in the prompt"]);
    }
}
