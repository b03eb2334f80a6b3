//! Text in pictures.

use std::sync::LazyLock;

use trace::text::is_hidden;

use super::canvas::{Canvas, Color};

/// DejaVu Sans, which has the letters of most languages.
static SANS: LazyLock<Option<fontdue::Font>> = LazyLock::new(|| {
    // The font is part of the program, so this can't fail.
    fontdue::Font::from_bytes(dejavu::sans::regular(), fontdue::FontSettings::default()).ok()
});

/// What stands for text that was cut off.
const CUT: char = '…';

/// The font.
#[derive(Clone, Copy, Debug)]
pub(super) struct Font(Option<&'static fontdue::Font>);

impl Font {
    /// Loads the font.
    pub(super) fn new() -> Self {
        Self(SANS.as_ref())
    }

    fn advance(self, c: char, size: f32) -> f32 {
        self.0.map_or(0.0, |font| font.metrics(c, size).advance_width)
    }

    /// Returns the width of a text in pixels.
    pub(super) fn width(self, text: &str, size: f32) -> u32 {
        // Casts of floating point saturate.
        text.chars().map(|c| self.advance(c, size)).sum::<f32>().ceil() as u32
    }

    /// Returns a text of one line, cut off at a width in pixels. Hidden characters are left out.
    pub(super) fn fit(self, text: &str, size: f32, width: u32) -> String {
        let plain: String = text.chars().filter(|c| !is_hidden(*c)).collect();
        if self.width(&plain, size) <= width {
            return plain;
        }
        let room = width as f32 - self.advance(CUT, size);
        let mut used = 0.0;
        let fits = |c: &char| {
            used += self.advance(*c, size);
            used <= room
        };
        plain.chars().take_while(fits).chain([CUT]).collect()
    }

    /// Returns a text in lines of a width in pixels, at most so many; the last one is cut off.
    pub(super) fn wrap(self, text: &str, size: f32, width: u32, most: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            let longer = lines.last().map(|line| format!("{line} {word}"));
            match longer {
                // Beyond the last line, what doesn't fit is cut off below.
                Some(longer) if lines.len() >= most || self.width(&longer, size) <= width => {
                    if let Some(line) = lines.last_mut() {
                        *line = longer;
                    }
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.iter().take(most).map(|line| self.fit(line, size, width)).collect()
    }

    /// Writes a text whose letters stand on a line, from a place in pixels on.
    pub(super) fn write(self, canvas: &mut Canvas, (x, baseline): (u32, u32), size: f32, color: Color, text: &str) {
        let Some(font) = self.0 else { return };
        let mut pen = x as f32;
        for c in text.chars().filter(|c| !is_hidden(*c)) {
            let (metrics, covers) = font.rasterize(c, size);
            let left = pen + metrics.xmin as f32;
            let top = baseline as f32 - (metrics.height as f32 + metrics.ymin as f32);
            for (row, line) in covers.chunks_exact(metrics.width.max(1)).enumerate() {
                for (column, cover) in line.iter().enumerate() {
                    let (x, y) = (left + column as f32, top + row as f32);
                    if x >= 0.0 && y >= 0.0 {
                        canvas.blend(x as u32, y as u32, color, *cover);
                    }
                }
            }
            pen += metrics.advance_width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_wrapped_and_cut() {
        let font = Font::new();
        let text = "the request of 2.00 GiB failed because memory was fragmented ".repeat(9);
        let lines = font.wrap(&text, 20.0, 400, 3);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| font.width(line, 20.0) <= 400), "{lines:?}");
        assert!(lines[2].ends_with(CUT) && !lines[1].contains(CUT), "{lines:?}");
        assert_eq!(font.wrap("short", 20.0, 400, 3), ["short"]);
        assert_eq!(font.wrap("", 20.0, 400, 3), [""; 0]);
        let word = font.wrap(&"x".repeat(500), 20.0, 400, 3);
        assert!(word.len() == 1 && word[0].ends_with(CUT));
        assert_eq!(font.fit("a\u{202e}b\nc", 20.0, 400), "abc");
    }
}
