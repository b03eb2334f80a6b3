//! Pixels.

/// Red, green and blue.
pub(super) type Color = [u8; 3];

/// A rectangle, in pixels from the top left corner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rect {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// A picture that is being drawn. What lies beyond its edges is cut off.
#[derive(Debug)]
pub(super) struct Canvas {
    size: (u32, u32),
    pixels: Vec<u8>,
}

impl Canvas {
    /// Creates a picture of one colour.
    pub(super) fn new(size: (u32, u32), color: Color) -> Self {
        Self { size, pixels: color.repeat(size.0 as usize * size.1 as usize) }
    }

    /// Covers a pixel with a colour; 255 covers it wholly.
    pub(super) fn blend(&mut self, x: u32, y: u32, color: Color, cover: u8) {
        if x >= self.size.0 || y >= self.size.1 {
            return;
        }
        let at = (y as usize * self.size.0 as usize + x as usize) * 3;
        let cover = u32::from(cover);
        for (pixel, part) in self.pixels.iter_mut().skip(at).zip(color) {
            *pixel = ((u32::from(*pixel) * (255 - cover) + u32::from(part) * cover) / 255) as u8;
        }
    }

    /// Fills a rectangle.
    pub(super) fn fill(&mut self, rect: Rect, color: Color) {
        for y in rect.y..rect.y.saturating_add(rect.height) {
            for x in rect.x..rect.x.saturating_add(rect.width) {
                self.blend(x, y, color, 255);
            }
        }
    }

    /// Draws the edges of a rectangle, one pixel wide.
    pub(super) fn outline(&mut self, Rect { x, y, width, height }: Rect, color: Color) {
        for line in [
            Rect { x, y, width, height: 1 },
            Rect { x, y: y + height, width, height: 1 },
            Rect { x, y, width: 1, height },
            Rect { x: x + width, y, width: 1, height },
        ] {
            self.fill(line, color);
        }
    }

    /// Encodes the picture.
    pub(super) fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.size.0, self.size.1);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(out)
    }
}
