//! Tile of a kernel, where its name tells.

/// Output rows, columns and depth that one block of threads computes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Rows.
    pub m: u32,
    /// Columns.
    pub n: u32,
    /// Depth, where the name has it.
    pub k: Option<u32>,
}

/// What libraries write in front of a tile: xmma, Tensile (macro tile), MIOpen (block tile), TensorRT-LLM.
const PREFIXES: &[&str] = &["tilesize", "MT", "bt", "t"];

/// The first `MxN` or `MxNxK` that stands as a word of its own. `MxN_KxS` is how nvjet and CUTLASS write depth and
/// number of stages.
pub(super) fn tile(name: &str) -> Option<Tile> {
    if let Some(traits) = name.split_once("Flash_fwd_kernel_traits<") {
        return flash_tile(traits.1);
    }
    let words: Vec<&str> = name.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    for (place, word) in words.iter().enumerate() {
        let bare = PREFIXES.iter().find_map(|prefix| word.strip_prefix(prefix)).unwrap_or(word);
        let sizes = sizes(bare);
        match sizes.as_deref() {
            Some([m, n]) => {
                let depth = words.get(place + 1).and_then(|next| self::sizes(next));
                return Some(Tile { m: *m, n: *n, k: depth.filter(|sizes| sizes.len() == 2).map(|sizes| sizes[0]) });
            }
            Some([m, n, k]) => return Some(Tile { m: *m, n: *n, k: Some(*k) }),
            _ => {}
        }
    }
    None
}

/// `Flash_fwd_kernel_traits<head width, rows, columns, warps, ...>`; nsys writes `(int)64` for 64.
fn flash_tile(arguments: &str) -> Option<Tile> {
    let mut numbers = arguments.split(',').map(|text| text.trim().trim_start_matches("(int)").parse::<u32>().ok());
    let (head, m, n) = (numbers.next()??, numbers.next()??, numbers.next()??);
    Some(Tile { m, n, k: Some(head) })
}

fn sizes(word: &str) -> Option<Vec<u32>> {
    let sizes: Option<Vec<u32>> = word.split('x').map(|part| part.parse().ok()).collect();
    sizes.filter(|sizes| (2..=3).contains(&sizes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_the_libraries_are_read() {
        let tile_of = |name| tile(name).map(|tile| (tile.m, tile.n, tile.k));
        assert_eq!(tile_of("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN"), Some((8, 64, Some(64))));
        let cutlass = "cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_32x1_tn_align2>";
        assert_eq!(tile_of(cutlass), Some((16, 16, Some(32))));
        let xmma =
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas";
        assert_eq!(tile_of(xmma), Some((128, 128, Some(64))));
        assert_eq!(tile_of("ampere_sgemm_128x64_tn"), Some((128, 64, None)));
        let sdpa =
            "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0";
        assert_eq!(tile_of(sdpa), Some((64, 128, Some(64))));
        let flash = "pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false>";
        assert_eq!(tile_of(flash), Some((128, 128, Some(64))));
        let tensile = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1_SN_LDSB1_AFC1";
        assert_eq!(tile_of(tensile), Some((256, 32, Some(64))));
        let miopen = "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x64x32_wt32x32x8_ws1x1_wr2x2_ta1x8x2x1";
        assert_eq!(tile_of(miopen), Some((128, 64, Some(32))));
        assert_eq!(tile_of("gemm_kernel"), None);
    }
}
