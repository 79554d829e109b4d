//! A decoded image: levels of red, green and blue, the right way up.

/// Size of a page, the right way up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

/// A decoded page, three bytes a pixel, row by row.
#[derive(Clone, PartialEq, Eq)]
pub struct RgbImage {
    page: Page,
    levels: Vec<u8>,
}

impl RgbImage {
    /// Pixels across.
    pub fn width(&self) -> u32 {
        self.page.width
    }

    /// Pixels down.
    pub fn height(&self) -> u32 {
        self.page.height
    }

    /// Its size.
    pub fn page(&self) -> Page {
        self.page
    }

    /// Red, green and blue of each pixel, row by row.
    pub fn levels(&self) -> &[u8] {
        &self.levels
    }

    pub(super) fn from_levels(width: usize, height: usize, levels: Vec<u8>) -> Self {
        debug_assert_eq!(levels.len(), width * height * 3);
        Self { page: Page { width: width as u32, height: height as u32 }, levels }
    }

    pub(super) fn filled(width: usize, height: usize, level: u8) -> Self {
        Self::from_levels(width, height, vec![level; width * height * 3])
    }

    /// The part that starts at `left`, `top`; it must lie inside.
    pub(super) fn window(&self, left: usize, top: usize, width: usize, height: usize) -> Self {
        let stride = self.page.width as usize * 3;
        let rows = self.levels.chunks_exact(stride).skip(top).take(height);
        let levels = rows.flat_map(|row| &row[left * 3..(left + width) * 3]).copied().collect();
        Self::from_levels(width, height, levels)
    }

    /// Copies `other` to `left`, `top`; it must lie inside.
    pub(super) fn paste(&mut self, other: &Self, left: usize, top: usize) {
        if other.levels.is_empty() {
            return;
        }
        let (stride, length) = (self.page.width as usize * 3, other.page.width as usize * 3);
        let rows = self.levels.chunks_exact_mut(stride).skip(top);
        for (row, from) in rows.zip(other.levels.chunks_exact(length)) {
            row[left * 3..left * 3 + length].copy_from_slice(from);
        }
    }
}

impl std::fmt::Debug for RgbImage {
    /// Without its pixels, which are millions.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RgbImage").field("page", &self.page).finish_non_exhaustive()
    }
}
