//! Pictures whose pixels are numbers of colours.

/// Returns the bytes of the pixels of `codes`: red, green, blue and opacity. A code without a colour is transparent.
pub fn painted(codes: &[u16], colors: &[[u8; 4]]) -> Vec<u8> {
    let mut bytes = vec![0; codes.len() * 4];
    for (pixel, code) in bytes.chunks_exact_mut(4).zip(codes) {
        if let Some(color) = colors.get(usize::from(*code)) {
            pixel.copy_from_slice(color);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_becomes_its_colour() {
        let colors = [[1, 2, 3, 255], [4, 5, 6, 255]];
        assert_eq!(painted(&[1, 0, 7], &colors), [4, 5, 6, 255, 1, 2, 3, 255, 0, 0, 0, 0]);
    }
}
