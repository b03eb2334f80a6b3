//! The flame graph's picture: the boxes of the last answer, scrolled to the current position.

use std::rc::Rc;

use query::{Answer, Flame, FlameBox, Paint};
use raster::{Pixels, Shape, Style, Transform};

use super::label::label;
use super::layout::Tree;
use crate::render::canvas::{Picture, Size};
use crate::render::painter::Painter;
use crate::render::palette::Palette;
use crate::render::surface::{Align, Area, Font, Surface, fit};

/// Height of one row of boxes in pixels.
pub const ROW: f64 = 20.0;
/// Boxes narrower than this have no label.
const NAMED_PX: f64 = 24.0;
/// Padding between a box's edge and its label.
const PAD_PX: f64 = 4.0;

/// What to draw, as set by the component.
pub struct Scene {
    /// An [`Answer::Flame`].
    pub answer: Rc<Answer>,
    /// Its boxes as a tree.
    pub tree: Rc<Tree>,
    /// The theme's colours.
    pub palette: Rc<Palette>,
    /// How far down the graph is scrolled, in CSS pixels.
    pub scroll: f64,
    /// Whether the root is at the bottom.
    pub upwards: bool,
    /// The boxes of the selected stack, from the root, to be outlined.
    pub marked: Vec<usize>,
    /// The box that the keyboard chose.
    pub chosen: Option<usize>,
}

/// The picture of the flame graph.
#[derive(Default)]
pub struct FlamePicture {
    /// What to draw; `None` until the first answer.
    pub scene: Option<Scene>,
    /// The box under the pointer.
    pub hover: Option<usize>,
    shapes: Rc<Vec<Shape>>,
    made_of: Option<(Rc<Answer>, Rc<Palette>, bool)>,
    revision: u64,
}

impl Scene {
    /// Returns the answer, if it is a flame graph.
    pub fn flame(&self) -> Option<&Flame> {
        match self.answer.as_ref() {
            Answer::Flame(flame) => Some(flame),
            _ => None,
        }
    }

    /// Returns the height of the whole graph in CSS pixels; at least that of the view.
    pub fn height(&self, view: f64) -> f64 {
        (self.tree.depth() as f64 * ROW).max(view)
    }

    /// Returns the top of a row in the whole graph, in CSS pixels.
    pub fn row_top(&self, depth: u32, view: f64) -> f64 {
        let depth = f64::from(depth);
        if self.upwards { self.height(view) - (depth + 1.0) * ROW } else { depth * ROW }
    }

    /// Returns the box at a point in CSS pixels.
    pub fn at(&self, (x, y): (f64, f64), size: Size) -> Option<usize> {
        let flame = self.flame()?;
        if size.width <= 0.0 || y < 0.0 {
            return None;
        }
        let down = if self.upwards { self.height(size.height) - (y + self.scroll) } else { y + self.scroll };
        self.tree.pick(&flame.boxes, (down.max(0.0) / ROW) as usize, (x / size.width) as f32)
    }

    /// Returns the transform of shapes, whose x is a share of the width and whose y is the distance from the root in rows.
    fn transform(&self, size: Size) -> Transform {
        let ratio = size.ratio;
        let root = if self.upwards { self.height(size.height) } else { 0.0 };
        let row = if self.upwards { -ROW } else { ROW };
        let y = ((row * ratio) as f32, ((root - self.scroll) * ratio).round() as f32);
        Transform { x: ((size.width * ratio) as f32, 0.0), y }
    }

    /// Returns the rectangle of a box in CSS pixels of the view, without the line between it and its neighbours.
    fn area(&self, flame_box: &FlameBox, size: Size) -> Area {
        let (left, right) = (f64::from(flame_box.x0) * size.width, f64::from(flame_box.x1) * size.width);
        let y = self.row_top(flame_box.depth, size.height) - self.scroll;
        Area { x: left, y, width: (right - left - 1.0 / size.ratio).max(0.5), height: ROW - 1.0 }
    }

    /// Returns the depths of the rows in view.
    fn rows(&self, size: Size) -> std::ops::Range<usize> {
        let (top, bottom) = (self.scroll, self.scroll + size.height);
        let height = self.height(size.height);
        let (top, bottom) = if self.upwards { (height - bottom, height - top) } else { (top, bottom) };
        (top / ROW).floor().max(0.0) as usize..((bottom / ROW).ceil().max(0.0) as usize).min(self.tree.depth())
    }
}

/// Returns the fill of a box.
fn fill(flame_box: &FlameBox, differs: bool, palette: &Palette) -> crate::render::color::Rgb {
    match flame_box.depth {
        0 => palette.raised,
        _ if differs => palette.change(flame_box.bytes, flame_box.before, flame_box.paint.has(Paint::DIM)),
        _ => palette.fill(flame_box.paint),
    }
}

/// Returns the shapes of an answer. A line of the background separates neighbours, if there is room.
fn shapes(flame: &Flame, palette: &Palette, upwards: bool) -> Vec<Shape> {
    let below = if upwards { Style::EDGE_TOP } else { Style::EDGE_BOTTOM };
    let style = Style::VISIBLE.with(Style::EDGE_RIGHT).with(below);
    let shape = |flame_box: &FlameBox| Shape {
        x: [flame_box.x0, flame_box.x1],
        y: [flame_box.depth as f32, flame_box.depth as f32 + 1.0],
        color: fill(flame_box, flame.query.differs, palette).pixel(),
        second: palette.background.pixel(),
        style,
    };
    flame.boxes.iter().map(shape).collect()
}

impl Picture for FlamePicture {
    fn draw(&mut self, painter: &mut dyn Painter, surface: &mut dyn Surface, size: Size) -> bool {
        let Some(scene) = &self.scene else { return true };
        let Some(flame) = scene.flame() else { return true };
        let is_made = self.made_of.as_ref().is_some_and(|(answer, palette, upwards)| {
            Rc::ptr_eq(answer, &scene.answer) && Rc::ptr_eq(palette, &scene.palette) && *upwards == scene.upwards
        });
        if !is_made {
            self.shapes = Rc::new(shapes(flame, &scene.palette, scene.upwards));
            self.made_of = Some((Rc::clone(&scene.answer), Rc::clone(&scene.palette), scene.upwards));
            self.revision += 1;
        }
        if painter.revision() != self.revision {
            painter.set_shapes(&self.shapes, self.revision);
        }
        let (width, height) = size.device();
        let clip = Pixels { x0: 0, y0: 0, x1: width as i32, y1: height as i32 };
        if !painter.paint(scene.palette.background, scene.transform(size), clip) {
            return false;
        }
        over(surface, scene, flame, self.hover, size);
        true
    }
}

/// Draws labels, and outlines around what is selected and chosen.
fn over(surface: &mut dyn Surface, scene: &Scene, flame: &Flame, hover: Option<usize>, size: Size) {
    let palette = &scene.palette;
    let boxes = &flame.boxes;
    let differs = flame.query.differs;
    let letter = surface.text_width("n", Font::Label).max(1.0);
    let hovered = hover.and_then(|i| boxes.get(i));
    if let Some(hovered) = hovered {
        surface.fill(scene.area(hovered, size), palette.text.at(0.2));
    }
    let rows = scene.rows(size);
    for depth in rows.clone() {
        for flame_box in scene.tree.row(boxes, depth) {
            let area = scene.area(flame_box, size);
            let room = area.width - 2.0 * PAD_PX;
            if area.width < NAMED_PX {
                continue;
            }
            let is_hovered = hovered.is_some_and(|hovered| std::ptr::eq(hovered, flame_box));
            let fill = fill(flame_box, differs, palette);
            let color = match () {
                () if depth == 0 => palette.text,
                () if flame_box.paint.has(Paint::DIM) => palette.text_dim,
                () if is_hovered => palette.text_on(fill.blend(palette.text, 0.2)),
                () => palette.text_on(fill),
            };
            let name = label(flame_box, flame.total, differs, (room / letter) as usize);
            if let Some(name) = fit(surface, &name, Font::Label, room) {
                let at = (area.x + PAD_PX, area.y + ROW / 2.0);
                surface.text(&name, at, Align::Start, Font::Label, color.into());
            }
        }
    }
    let is_in_view = |flame_box: &&FlameBox| rows.contains(&(flame_box.depth as usize));
    let marked = scene.marked.iter().filter_map(|i| boxes.get(*i)).filter(|marked| marked.depth > 0);
    for marked in marked.filter(is_in_view) {
        // The text colour stands out on any fill; the end of the stack has a thicker line.
        let width = if marked.depth as usize + 1 == scene.marked.len() { 2.0 } else { 1.0 };
        surface.outline(scene.area(marked, size), width, palette.text.into());
    }
    if let Some(chosen) = scene.chosen.and_then(|i| boxes.get(i)).filter(is_in_view) {
        surface.outline(scene.area(chosen, size), 2.0, palette.accent.into());
    }
}

#[cfg(test)]
mod tests {
    use query::{FlameQuery, Sealed};

    use super::*;
    use crate::render::surface::log::SurfaceLog;
    use crate::views::flame::layout::tests::boxes;

    const SIZE: Size = Size { width: 600.0, height: 40.0, ratio: 1.0 };

    fn scene(upwards: bool, scroll: f64) -> Scene {
        let flame =
            Flame { query: FlameQuery::default(), boxes: boxes(), total: 1000, names: Vec::new(), matched: None };
        let tree = Rc::new(Tree::new(&flame.boxes));
        let answer = Rc::new(Answer::Flame(Sealed::new(&flame)));
        Scene { answer, tree, palette: Rc::new(Palette::dark()), scroll, upwards, marked: Vec::new(), chosen: None }
    }

    /// Returns what is drawn over the shapes, without colours.
    fn log(scene: &Scene, hover: Option<usize>) -> Vec<String> {
        let mut surface = SurfaceLog::default();
        over(&mut surface, scene, scene.flame().expect("a flame graph"), hover, SIZE);
        surface.0.iter().map(|line| line.split(" #").next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn rows_in_view_have_labels_and_what_is_chosen_an_outline() {
        let mut scene = scene(false, 10.0);
        (scene.marked, scene.chosen) = (vec![0, 1, 5], Some(2));
        assert_eq!(
            log(&scene, Some(1)),
            [
                "fill 0,10 359x19",
                "text \"f4294967295  0.98 KiB · 100 %\" at 4,0 Start",
                "text \"f1  600 B · 60.0 %\" at 4,20 Start",
                "text \"f2  199 B · 19.9 %\" at 364,20 Start",
                "text \"f4294967295\" at 484,20 Start",
                "text \"f3  300 B · 30.0 %\" at 4,40 Start",
                "text \"f4  300 B · 30.0 %\" at 184,40 Start",
                "text \"f5\" at 394,40 Start",
                "outline 0,10 359x19 by 1",
                "outline 180,30 179x19 by 2",
                "outline 360,10 119x19 by 2",
            ]
        );
    }

    #[test]
    fn a_box_is_found_where_it_is_drawn() {
        for (upwards, scroll) in [(false, 0.0), (false, 15.0), (true, 20.0), (true, 3.0)] {
            let scene = scene(upwards, scroll);
            let all = scene.flame().expect("a flame graph").boxes.clone();
            let transform = scene.transform(SIZE);
            let drawn = shapes(scene.flame().expect("a flame graph"), &scene.palette, upwards);
            for (i, (flame_box, shape)) in all.iter().zip(&drawn).enumerate() {
                let area = scene.area(flame_box, SIZE);
                let middle = (area.x + area.width / 2.0, area.y + area.height / 2.0);
                let cover = transform.cover(shape);
                assert_eq!(
                    (cover.x0, cover.y0),
                    (area.x.round() as i32, area.y.round() as i32),
                    "{upwards} {scroll} {i}"
                );
                if middle.1 >= 0.0 {
                    assert_eq!(scene.at(middle, SIZE), Some(i), "{upwards} {scroll}");
                }
            }
        }
    }
}
