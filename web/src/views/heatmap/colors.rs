//! The colours of a heatmap's codes in each theme.

use query::heatmap::{address, size};
use query::{Heatmap, Paint};

use crate::render::color::Rgb;
use crate::render::palette::Palette;

/// Returns the weights of all cells of a heatmap of addresses, one upon the other: what none of them has is not in the picture.
pub fn uses(map: &Heatmap) -> u16 {
    map.cells.iter().fold(0, |all, cell| all | cell)
}

/// Set in the code of a pixel that marks sizes that nothing could serve at some moment.
pub const MARK: u16 = 0x400;
/// Powers of two for one step of the ramp, so that it reaches from 512 bytes to some hundred gibibytes.
const POWERS: u16 = 2;

/// Returns the colours of the codes of addresses, with one for gaps that are too small.
pub fn of_addresses(palette: &Palette, too_small: Rgb) -> Vec<[u8; 4]> {
    let layers = [
        (address::ALLOCATED, palette.allocated),
        (address::USABLE, palette.cached),
        (address::WAITING, palette.pending),
        (address::UNUSABLE, too_small),
    ];
    let mut colors = vec![[0; 4]; 1 << u16::BITS];
    mix(&mut colors, &layers, 0, address::WHOLE, [0; 3], palette.background);
    colors
}

/// Sets the colours of all codes that begin with the weights in `code`, whose colours add up to `sums`. `rest` is left of
/// the whole; codes with more than the whole don't occur.
fn mix(colors: &mut [[u8; 4]], layers: &[(u16, Rgb)], code: u16, rest: u16, sums: [u32; 3], ground: Rgb) {
    let with = |weight: u16, Rgb(r, g, b): Rgb| {
        let [x, y, z] = sums;
        [(x, r), (y, g), (z, b)].map(|(sum, part)| sum + u32::from(part) * u32::from(weight))
    };
    let Some(((shift, color), layers)) = layers.split_first() else {
        let [r, g, b] = with(rest, ground).map(|sum| (sum / u32::from(address::WHOLE)).min(255) as u8);
        if let Some(own) = colors.get_mut(usize::from(code)) {
            *own = [r, g, b, u8::MAX];
        }
        return;
    };
    for weight in 0..=rest {
        mix(colors, layers, code | weight << shift, rest - weight, with(weight, *color), ground);
    }
}

/// Returns the colours of the codes of sizes.
pub fn of_sizes(palette: &Palette) -> Vec<[u8; 4]> {
    (0..MARK * 2)
        .map(|code| {
            let step = code & size::STEP;
            let Rgb(r, g, b) = match code {
                _ if code & MARK != 0 && code & size::NONE_AT_SOME_POSITION != 0 => palette.unusable,
                _ if code & size::IS_KNOWN == 0 || step == 0 => palette.background,
                _ => palette.fill(Paint::ramp((step - 1) / POWERS)),
            };
            [r, g, b, u8::MAX]
        })
        .collect()
}

/// Rows of pixels for each row of sizes; the last one has the mark.
pub const ROWS: usize = 5;

/// Returns the codes of pixels for those of sizes: rows of the same code, and one below them for the mark.
pub fn with_marks(codes: &[u16], columns: usize) -> Vec<u16> {
    let mut pixels = Vec::with_capacity(codes.len() * ROWS);
    for row in codes.chunks(columns.max(1)) {
        for _ in 1..ROWS {
            pixels.extend_from_slice(row);
        }
        pixels.extend(row.iter().map(|code| code | MARK));
    }
    pixels
}

/// Returns how near a column is to the middle of a span of columns, in 256ths: all in the middle half of the span, and less
/// and less from there to its ends.
fn nearness(column: usize, (start, end): (f64, f64)) -> u32 {
    let half = (end - start) / 2.0;
    let away = (column as f64 + 0.5 - start - half).abs();
    // Casts of floats saturate.
    (((1.0 - away / half.max(f64::MIN_POSITIVE)) * 2.0).min(1.0) * 256.0) as u32
}

/// Returns the bytes of the pixels of `codes`, row by row of `columns`: the columns in the middle of `near` have other
/// colours than those that are far from it, without an edge between them, which would look like an event.
pub fn painted_around(codes: &[u16], columns: usize, near: (f64, f64), colors: &[[u8; 4]], far: &[[u8; 4]]) -> Vec<u8> {
    let mut bytes = raster::painted(codes, far);
    let columns = columns.max(1);
    // Casts of floats saturate.
    let seen = (near.0.floor() as usize).min(columns)..(near.1.ceil() as usize).min(columns);
    let shares: Vec<u32> = seen.clone().map(|column| nearness(column, near)).collect();
    for (pixels, codes) in bytes.chunks_mut(columns * 4).zip(codes.chunks(columns)) {
        if let (Some(pixels), Some(codes)) = (pixels.get_mut(seen.start * 4..seen.end * 4), codes.get(seen.clone())) {
            let painted = raster::painted(codes, colors);
            for ((pixel, own), share) in pixels.chunks_mut(4).zip(painted.chunks(4)).zip(&shares) {
                for (far, near) in pixel.iter_mut().zip(own) {
                    *far = ((u32::from(*far) * (256 - share) + u32::from(*near) * share) >> 8) as u8;
                }
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_mix_colours() {
        for palette in [Palette::dark(), Palette::light()] {
            let colors = of_addresses(&palette, palette.unusable);
            let plain = |Rgb(r, g, b): Rgb| [r, g, b, 255];
            assert_eq!(colors[0x0000], plain(palette.background));
            assert_eq!(colors[0x000f], plain(palette.allocated));
            assert_eq!(colors[0xf000], plain(palette.unusable));
            assert_eq!(colors.len(), 1 << 16);
            let is_whole = |code: usize| (0..4).map(|layer| code >> (4 * layer) & 15).sum::<usize>() <= 15;
            assert!(colors.iter().enumerate().all(|(code, color)| is_whole(code) == (color[3] == 255)));
            let half = Rgb(colors[0x0087][0], colors[0x0087][1], colors[0x0087][2]);
            assert!(half.distance(palette.cached) < palette.allocated.distance(palette.cached));
        }
    }

    #[test]
    fn gaps_are_red_only_near_the_failure_that_they_are_too_small_for() {
        let palette = Palette::light();
        let [near, far] = [palette.unusable, palette.too_small].map(|color| of_addresses(&palette, color));
        let codes = [0xf000, 0xf000, 0x000f, 0xf000, 0xf000, 0x000f];
        let bytes = painted_around(&codes, 3, (1.0, 2.0), &near, &far);
        let pixels: Vec<&[u8]> = bytes.chunks(4).collect();
        let of = |Rgb(r, g, b): Rgb| vec![r, g, b, 255];
        let row = [of(palette.too_small), of(palette.unusable), of(palette.allocated)];
        assert_eq!(pixels, [row.clone(), row].concat());
        let bytes = painted_around(&[0xf000], 1, (5.0, 9.0), &near, &far);
        assert_eq!(bytes, of(palette.too_small), "the failure is out of view");
        let long = painted_around(&[0xf000; 100], 100, (10.0, 90.0), &near, &far);
        let green: Vec<u8> = long.chunks(4).map(|pixel| pixel[1]).collect();
        assert_eq!((green[0], green[50]), (palette.too_small.1, palette.unusable.1));
        let most = green.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap();
        assert!(most < 12, "there is no edge: {green:?}");
    }

    #[test]
    fn marks_lie_below_each_size() {
        let palette = Palette::dark();
        let colors = of_sizes(&palette);
        let codes = [size::IS_KNOWN | 3, size::IS_KNOWN | size::NONE_AT_SOME_POSITION | 3];
        let pixels = with_marks(&codes, 2);
        assert_eq!(pixels.len(), 2 * ROWS);
        let at = |row: usize, column: usize| colors[usize::from(pixels[row * 2 + column])];
        let Rgb(r, g, b) = palette.unusable;
        assert_eq!(at(ROWS - 1, 1), [r, g, b, 255]);
        assert_eq!(at(ROWS - 1, 0), at(0, 0), "something could serve it at all times");
        assert_eq!(at(0, 0), at(0, 1));
    }
}
