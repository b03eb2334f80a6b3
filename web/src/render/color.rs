//! Colours: sRGB for screens, OKLab for choosing and comparing them, blending and contrast.

use std::f64::consts::FRAC_PI_2;

use trace::order::Within;

use super::math::sine;

/// An opaque sRGB colour, eight bits a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    /// Creates a colour from `0xrrggbb`.
    pub const fn hex(value: u32) -> Self {
        Self((value >> 16) as u8, (value >> 8) as u8, value as u8)
    }

    /// Formats the colour for CSS and SVG: `#rrggbb`.
    pub fn css(self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(7);
        text.push('#');
        for channel in [self.0, self.1, self.2] {
            text.push(char::from(DIGITS[usize::from(channel >> 4)]));
            text.push(char::from(DIGITS[usize::from(channel & 15)]));
        }
        text
    }

    /// Returns four bytes in memory order, opaque: the format of canvas pixels and vertices.
    pub const fn pixel(self) -> u32 {
        u32::from_le_bytes([self.0, self.1, self.2, 255])
    }

    /// Creates a colour from OKLCH: lightness 0 to 1, chroma (up to about 0.4), hue in degrees. Reduces the chroma to
    /// what sRGB can show.
    pub fn oklch(lightness: f32, chroma: f32, hue: f32) -> Self {
        let hue = f64::from(hue).to_radians();
        let (sin, cos) = (sine(hue) as f32, sine(hue + FRAC_PI_2) as f32);
        let mut chroma = chroma;
        loop {
            let linear = oklab_to_linear([lightness, chroma * cos, chroma * sin]);
            if chroma < 0.005 || linear.iter().all(|v| (-0.001..=1.001).contains(v)) {
                let [r, g, b] = linear.map(encode);
                return Self(r, g, b);
            }
            chroma -= 0.005;
        }
    }

    /// Returns this colour with a `share` (0 to 1) of another laid over it.
    #[must_use]
    pub fn blend(self, over: Self, share: f32) -> Self {
        let mix = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * share).round() as u8;
        Self(mix(self.0, over.0), mix(self.1, over.1), mix(self.2, over.2))
    }

    /// Returns the relative luminance as defined by WCAG.
    pub fn luminance(self) -> f32 {
        let [r, g, b] = self.linear();
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    /// Returns the contrast with another colour as defined by WCAG: 1 to 21.
    pub fn contrast(self, other: Self) -> f32 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn linear(self) -> [f32; 3] {
        [self.0, self.1, self.2].map(|v| {
            let v = f32::from(v) / 255.0;
            if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        })
    }
}

/// Encodes a linear channel from 0 to 1 with sRGB's transfer function.
fn encode(v: f32) -> u8 {
    let v = v.within(0.0, 1.0);
    let v = if v <= 0.003_130_8 { v * 12.92 } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
    (v * 255.0).round() as u8
}

/// Björn Ottosson's matrices: https://bottosson.github.io/posts/oklab/.
fn oklab_to_linear([l, a, b]: [f32; 3]) -> [f32; 3] {
    let cube = |v: f32| v * v * v;
    let l_ = cube(l + 0.396_337_78 * a + 0.215_803_76 * b);
    let m_ = cube(l - 0.105_561_346 * a - 0.063_854_17 * b);
    let s_ = cube(l - 0.089_484_18 * a - 1.291_485_5 * b);
    [
        4.076_741_7 * l_ - 3.307_711_6 * m_ + 0.230_969_94 * s_,
        -1.268_438 * l_ + 2.609_757_4 * m_ - 0.341_319_38 * s_,
        -0.004_196_086_3 * l_ - 0.703_418_6 * m_ + 1.707_614_7 * s_,
    ]
}

/// Measures for palettes: distances, and simulated colour blindness.
#[cfg(test)]
pub(super) mod vision {
    use super::{Rgb, encode};

    impl Rgb {
        /// Returns the distance to another colour in OKLab; about 0.02 is just noticeable side by side.
        pub(crate) fn distance(self, other: Self) -> f32 {
            let (a, b) = (linear_to_oklab(self.linear()), linear_to_oklab(other.linear()));
            a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt()
        }
    }

    fn linear_to_oklab([r, g, b]: [f32; 3]) -> [f32; 3] {
        let l = (0.412_221_46 * r + 0.536_332_55 * g + 0.051_445_995 * b).cbrt();
        let m = (0.211_903_5 * r + 0.680_699_5 * g + 0.107_396_96 * b).cbrt();
        let s = (0.088_302_46 * r + 0.281_718_85 * g + 0.629_978_7 * b).cbrt();
        [
            0.210_454_26 * l + 0.793_617_8 * m - 0.004_072_047 * s,
            1.977_998_5 * l - 2.428_592_2 * m + 0.450_593_7 * s,
            0.025_904_037 * l + 0.782_771_77 * m - 0.808_675_77 * s,
        ]
    }

    /// Viénot, Brettel and Mollon's 1999 projections, for linear sRGB.
    const PROTANOPIA: [[f32; 3]; 3] =
        [[0.112_38, 0.887_62, 0.0], [0.112_38, 0.887_62, 0.0], [0.004_01, -0.004_01, 1.0]];
    const DEUTERANOPIA: [[f32; 3]; 3] =
        [[0.292_75, 0.707_25, 0.0], [0.292_75, 0.707_25, 0.0], [-0.022_34, 0.022_34, 1.0]];

    fn seen(color: Rgb, matrix: [[f32; 3]; 3]) -> Rgb {
        let linear = color.linear();
        let [r, g, b] = matrix.map(|row| encode(row.iter().zip(linear).map(|(a, b)| a * b).sum()));
        Rgb(r, g, b)
    }

    pub(crate) fn protanopia(color: Rgb) -> Rgb {
        seen(color, PROTANOPIA)
    }

    pub(crate) fn deuteranopia(color: Rgb) -> Rgb {
        seen(color, DEUTERANOPIA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_colours() {
        assert_eq!(Rgb::hex(0x0a_f0_3c).css(), "#0af03c");
        assert_eq!(Rgb::oklch(1.0, 0.0, 0.0), Rgb(255, 255, 255));
        // OKLCH of sRGB red, from Ottosson's page.
        let red = Rgb::oklch(0.627_96, 0.257_68, 29.234);
        assert!(red.distance(Rgb(255, 0, 0)) < 0.01, "{red:?}");
        assert!((Rgb(0, 0, 0).contrast(Rgb(255, 255, 255)) - 21.0).abs() < 0.01);
        assert_eq!(Rgb(0, 0, 0).blend(Rgb(200, 100, 50), 0.5), Rgb(100, 50, 25));
        assert_eq!(Rgb(1, 2, 3).pixel().to_le_bytes(), [1, 2, 3, 255]);
    }
}
