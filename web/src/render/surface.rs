//! Lines, words and flags over the shapes, drawn through a trait: the real one writes on a 2D canvas, the tests' one
//! writes a log, so that what is drawn, and in which order, can be checked without a browser.

use super::color::Rgb;

/// A colour with its opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ink {
    /// The colour.
    pub color: Rgb,
    /// 0 is invisible, 1 covers.
    pub opacity: f64,
}

impl From<Rgb> for Ink {
    fn from(color: Rgb) -> Self {
        Self { color, opacity: 1.0 }
    }
}

impl Rgb {
    /// The colour, see-through.
    pub const fn at(self, opacity: f64) -> Ink {
        Ink { color: self, opacity }
    }
}

/// Where a text lies relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// To its right.
    Start,
    /// Around it.
    Middle,
    /// To its left.
    End,
}

/// How a text is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Font {
    /// Labels of axes and shapes.
    Label,
    /// The same, stronger.
    Strong,
}

/// A rectangle in CSS pixels: left, top, width, height.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Area {
    /// Left.
    pub x: f64,
    /// Top.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Area {
    /// The first x to its right.
    pub fn right(self) -> f64 {
        self.x + self.width
    }

    /// The first y below it.
    pub fn bottom(self) -> f64 {
        self.y + self.height
    }

    /// Whether a point lies in it.
    pub fn contains(self, (x, y): (f64, f64)) -> bool {
        x >= self.x && x < self.right() && y >= self.y && y < self.bottom()
    }
}

/// Draws over the shapes. All coordinates are CSS pixels from the canvas' top left corner.
pub trait Surface {
    /// A rectangle.
    fn fill(&mut self, area: Area, ink: Ink);
    /// A rectangle's outline, `width` pixels inside its edge.
    fn outline(&mut self, area: Area, width: f64, ink: Ink);
    /// A line of one device pixel along the y axis.
    fn vertical(&mut self, x: f64, from: f64, to: f64, ink: Ink);
    /// A line of one device pixel along the x axis; dashed or not.
    fn horizontal(&mut self, y: f64, from: f64, to: f64, is_dashed: bool, ink: Ink);
    /// A closed shape.
    fn polygon(&mut self, points: &[(f64, f64)], ink: Ink);
    /// A line around a closed shape.
    fn contour(&mut self, points: &[(f64, f64)], width: f64, ink: Ink);
    /// A veil over an area, with holes.
    fn veil(&mut self, area: Area, holes: &[Vec<(f64, f64)>], ink: Ink);
    /// A line of text, vertically centred on `y`.
    fn text(&mut self, text: &str, at: (f64, f64), align: Align, font: Font, ink: Ink);
    /// The width of a text.
    fn text_width(&mut self, text: &str, font: Font) -> f64;
}

/// As much of a text's beginning as fits a width, with an ellipsis where it is cut; `None` where nothing sensible fits.
pub fn fit(surface: &mut dyn Surface, text: &str, font: Font, width: f64) -> Option<String> {
    shorten(surface, text, font, width, |letters, keep| letters[..keep].iter().copied().chain(['…']).collect())
}

/// As much of a text's end as fits a width.
pub fn fit_end(surface: &mut dyn Surface, text: &str, font: Font, width: f64) -> Option<String> {
    shorten(surface, text, font, width, |letters, keep| {
        std::iter::once('…').chain(letters[letters.len() - keep..].iter().copied()).collect()
    })
}

/// Fewer letters than this are a stump that says nothing.
const LEAST_LETTERS: usize = 5;

/// Tries to keep fewer and fewer letters. `cut` is asked for no more of them than there are.
fn shorten(
    surface: &mut dyn Surface,
    text: &str,
    font: Font,
    width: f64,
    cut: impl Fn(&[char], usize) -> String,
) -> Option<String> {
    let whole = surface.text_width(text, font);
    if whole <= width {
        return Some(text.to_owned());
    }
    let letters: Vec<char> = text.chars().collect();
    // A share of the width is about that share of the letters; what follows corrects.
    let mut keep = ((width / whole.max(1.0)) * letters.len() as f64).floor().max(0.0) as usize;
    keep = keep.min(letters.len());
    while keep >= LEAST_LETTERS {
        let text = cut(&letters, keep);
        if surface.text_width(&text, font) <= width {
            return Some(text);
        }
        keep -= 1;
    }
    None
}

#[cfg(test)]
pub(crate) mod log {
    use super::*;

    /// Writes down what is drawn. Every letter is six pixels wide.
    #[derive(Default)]
    pub(crate) struct SurfaceLog(pub(crate) Vec<String>);

    fn area(a: Area) -> String {
        format!("{},{} {}x{}", a.x.round(), a.y.round(), a.width.round(), a.height.round())
    }

    impl Surface for SurfaceLog {
        fn fill(&mut self, a: Area, ink: Ink) {
            self.0.push(format!("fill {} {}", area(a), ink.color.css()));
        }
        fn outline(&mut self, a: Area, width: f64, ink: Ink) {
            self.0.push(format!("outline {} by {width} {}", area(a), ink.color.css()));
        }
        fn vertical(&mut self, x: f64, from: f64, to: f64, ink: Ink) {
            self.0.push(format!("vertical {} from {} to {} {}", x.round(), from.round(), to.round(), ink.color.css()));
        }
        fn horizontal(&mut self, y: f64, from: f64, to: f64, is_dashed: bool, ink: Ink) {
            let kind = if is_dashed { "dashed" } else { "horizontal" };
            self.0.push(format!("{kind} {} from {} to {} {}", y.round(), from.round(), to.round(), ink.color.css()));
        }
        fn polygon(&mut self, points: &[(f64, f64)], ink: Ink) {
            let first = points.first().copied().unwrap_or_default();
            self.0.push(format!("polygon at {},{} {}", first.0.round(), first.1.round(), ink.color.css()));
        }
        fn contour(&mut self, points: &[(f64, f64)], width: f64, ink: Ink) {
            self.0.push(format!("contour of {} by {width} {}", points.len(), ink.color.css()));
        }
        fn veil(&mut self, a: Area, holes: &[Vec<(f64, f64)>], ink: Ink) {
            self.0.push(format!("veil {} with {} holes {}", area(a), holes.len(), ink.color.css()));
        }
        fn text(&mut self, text: &str, at: (f64, f64), align: Align, _: Font, _: Ink) {
            self.0.push(format!("text {text:?} at {},{} {align:?}", at.0.round(), at.1.round()));
        }
        fn text_width(&mut self, text: &str, _: Font) -> f64 {
            text.chars().count() as f64 * 6.0
        }
    }

    #[test]
    fn texts_are_cut_where_they_don_t_fit() {
        let mut surface = SurfaceLog::default();
        let mut check = |width, want: Option<&str>| {
            assert_eq!(fit(&mut surface, "train.py:120", Font::Label, width).as_deref(), want, "{width}");
        };
        check(72.0, Some("train.py:120"));
        check(60.0, Some("train.py:…"));
        check(36.0, Some("train…"));
        check(35.0, None);
        assert_eq!(fit_end(&mut surface, "0x7c0005400000", Font::Label, 60.0).as_deref(), Some("…005400000"));
        assert_eq!(fit_end(&mut surface, "0x7c0005400000", Font::Label, 10.0), None);
    }
}
