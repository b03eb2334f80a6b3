//! The overlay's drawing surface, as a trait: the implementation draws on a 2D canvas, the one for tests writes a log,
//! so that what is drawn and in which order can be checked without a browser.

use web_sys::HtmlCanvasElement;

use super::color::Rgb;

/// A colour with its opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ink {
    /// The colour.
    pub color: Rgb,
    /// From 0 (invisible) to 1 (opaque).
    pub opacity: f64,
}

impl From<Rgb> for Ink {
    fn from(color: Rgb) -> Self {
        Self { color, opacity: 1.0 }
    }
}

impl Rgb {
    /// Returns the colour with an opacity.
    pub const fn at(self, opacity: f64) -> Ink {
        Ink { color: self, opacity }
    }
}

/// The horizontal position of text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// To its right.
    Start,
    /// Around it.
    Middle,
    /// To its left.
    End,
}

/// The font of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Font {
    /// For labels of axes and shapes.
    Label,
    /// Semibold.
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
    /// Returns the x coordinate of the right edge.
    pub fn right(self) -> f64 {
        self.x + self.width
    }

    /// Returns the y coordinate of the bottom edge.
    pub fn bottom(self) -> f64 {
        self.y + self.height
    }

    /// Returns whether this area is completely inside another.
    pub fn is_within(self, other: Self) -> bool {
        self.x >= other.x && self.right() <= other.right() && self.y >= other.y && self.bottom() <= other.bottom()
    }

    /// Returns whether the two have more than an edge in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.x < other.right() && other.x < self.right() && self.y < other.bottom() && other.y < self.bottom()
    }

    /// Returns whether a point is inside.
    pub fn contains(self, (x, y): (f64, f64)) -> bool {
        x >= self.x && x < self.right() && y >= self.y && y < self.bottom()
    }
}

/// A surface over the shapes. All coordinates are CSS pixels from the canvas' top left corner.
pub trait Surface {
    /// Fills a rectangle.
    fn fill(&mut self, area: Area, ink: Ink);
    /// Draws a rectangle's outline, `width` pixels wide, inside its edge.
    fn outline(&mut self, area: Area, width: f64, ink: Ink);
    /// Draws a vertical line of one device pixel.
    fn vertical(&mut self, x: f64, from: f64, to: f64, ink: Ink);
    /// Draws a horizontal line of one device pixel, dashed or solid.
    fn horizontal(&mut self, y: f64, from: f64, to: f64, is_dashed: bool, ink: Ink);
    /// Fills a polygon.
    fn polygon(&mut self, points: &[(f64, f64)], ink: Ink);
    /// Draws the outline of a polygon.
    fn contour(&mut self, points: &[(f64, f64)], width: f64, ink: Ink);
    /// Draws a part of an image, `from` in its own pixels, into an area. Pixels stay sharp.
    fn image(&mut self, image: &HtmlCanvasElement, from: Area, into: Area);
    /// Draws a line of text, vertically centred on `y`.
    fn text(&mut self, text: &str, at: (f64, f64), align: Align, font: Font, ink: Ink);
    /// Returns the width of a text.
    fn text_width(&mut self, text: &str, font: Font) -> f64;
}

/// Returns as much of a text's start as fits a width, with an ellipsis if it is cut; `None` if too little fits.
pub fn fit(surface: &mut dyn Surface, text: &str, font: Font, width: f64) -> Option<String> {
    shorten(surface, text, font, width, |letters, keep| letters[..keep].iter().copied().chain(['…']).collect())
}

/// Returns as much of a text's end as fits a width, with an ellipsis if it is cut; `None` if too little fits.
pub fn fit_end(surface: &mut dyn Surface, text: &str, font: Font, width: f64) -> Option<String> {
    shorten(surface, text, font, width, |letters, keep| {
        std::iter::once('…').chain(letters[letters.len() - keep..].iter().copied()).collect()
    })
}

/// Returns as much of a call site as fits a width. It is cut before its file, so that file and line stay as long as there is
/// room for them, and the line to the last; `None` if too little fits.
pub fn fit_site(surface: &mut dyn Surface, text: &str, font: Font, width: f64) -> Option<String> {
    let has_line = text.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok());
    if !has_line {
        return fit(surface, text, font, width);
    }
    let file = text.rsplit(['/', ' ']).next().unwrap_or_default().chars().count();
    shorten(surface, text, font, width, |letters, keep| {
        let end = file.min(keep.saturating_sub(keep.min(3)).max(keep * 2 / 3));
        let (head, tail) = (&letters[..keep - end], &letters[letters.len() - end..]);
        head.iter().copied().chain(['…']).chain(tail.iter().copied()).collect()
    })
}

/// Fewer letters than this are not worth showing.
const LEAST_LETTERS: usize = 5;

/// Shortens a text until it fits. `cut` is called with at most the number of its letters.
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
    // The share of the width estimates the share of the letters; the loop corrects it.
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

    /// Logs what is drawn. Every letter is six pixels wide.
    #[derive(Default)]
    pub(crate) struct SurfaceLog(pub(crate) Vec<String>);

    impl SurfaceLog {
        /// Returns every text with its rectangle.
        pub(crate) fn words(&self) -> Vec<(Area, String)> {
            let number = |text: &str| text.parse::<f64>().unwrap();
            let found = self.0.iter().filter_map(|line| {
                let (text, rest) = line.strip_prefix("text \"")?.rsplit_once("\" at ")?;
                let (point, align) = rest.split_once(' ')?;
                let (x, y) = point.split_once(',')?;
                let width = text.chars().count() as f64 * 6.0;
                let x = match align {
                    "Start" => number(x),
                    "Middle" => number(x) - width / 2.0,
                    _ => number(x) - width,
                };
                Some((Area { x, y: number(y) - 5.0, width, height: 10.0 }, text.to_owned()))
            });
            found.collect()
        }
    }

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
        fn image(&mut self, _: &HtmlCanvasElement, from: Area, into: Area) {
            self.0.push(format!("image {} into {}", area(from), area(into)));
        }
        fn text(&mut self, text: &str, at: (f64, f64), align: Align, _: Font, _: Ink) {
            self.0.push(format!("text {text:?} at {},{} {align:?}", at.0.round(), at.1.round()));
        }
        fn text_width(&mut self, text: &str, _: Font) -> f64 {
            text.chars().count() as f64 * 6.0
        }
    }

    #[test]
    fn long_texts_are_cut() {
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

    #[test]
    fn a_call_site_keeps_its_line() {
        let mut surface = SurfaceLog::default();
        let mut cut = |text, letters: u32| fit_site(&mut surface, text, Font::Label, f64::from(letters) * 6.0);
        let site = "forward  a/long/folder/gpt.py:24";
        assert_eq!(cut(site, 32).as_deref(), Some(site));
        assert_eq!(cut(site, 24).as_deref(), Some("forward  a/lon…gpt.py:24"));
        assert_eq!(cut(site, 13).as_deref(), Some("for…gpt.py:24"));
        assert_eq!(cut(site, 9).as_deref(), Some("for…py:24"));
        assert_eq!(cut("_cudnn_convolution", 10).as_deref(), Some("_cudnn_co…"), "without a line its start tells most");
        assert_eq!(cut(site, 4), None);
    }
}
