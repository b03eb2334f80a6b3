//! The heatmap's picture: the cells of the last answer as an image, stretched over its place in the current window, and
//! the marks that it shares with the timeline.

use std::rc::Rc;

use js_sys::Reflect;
use query::{
    Answer, Axis, Heatmap, HeatmapCellQuery, HeatmapGroup, HeatmapRow, HeatmapRows, Window, pool_name, stream_name,
};
use raster::{Pixels, Transform};
use trace::order::Within;
use trace::units::{Bytes, Stream};
use wasm_bindgen::{Clamped, JsCast};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, ImageData};

use super::colors;
use super::ghost::Ghost;
use crate::browser::document;
use crate::render::canvas::{Picture, Size};
use crate::render::labels::Labels;
use crate::render::painter::Painter;
use crate::render::palette::Palette;
use crate::render::surface::{Align, Area, Font, Surface, fit, fit_end};
use crate::views::chart::drag::{DragPreview, Draggable};
use crate::views::chart::gesture::PlotArea;
use crate::views::chart::marks::{self, Marks};
use crate::views::{losses, range_band};

/// The height of a line of a label in pixels, and the least height of an area that has one.
const LABEL: f64 = 14.0;
const LOWEST: f64 = 10.0;

/// What to draw, as set by the component.
pub struct Scene {
    /// The answer to draw.
    pub answer: Rc<Answer>,
    /// The theme's colours.
    pub palette: Rc<Palette>,
    /// The plot area.
    pub plot_area: PlotArea,
    /// The x axis.
    pub axis: Axis,
    /// The marks.
    pub marks: Marks,
    /// A request that failed in view.
    pub ghost: Option<Ghost>,
    /// The moments around the failure that says which gaps are too small: at others, the same gaps are no trouble. `None` if
    /// no failure says so.
    pub near: Option<Window>,
    /// The streams of the device, which have short names.
    pub streams: Vec<Stream>,
}

/// What is under the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hover {
    /// A cell.
    Cell(HeatmapCellQuery),
    /// The request that failed right before this position.
    Failure(u32),
}

/// The picture of the heatmap.
#[derive(Default)]
pub struct HeatmapPicture {
    /// What to draw; `None` until the first answer.
    pub scene: Option<Scene>,
    /// What is under the pointer.
    pub hover: Option<Hover>,
    drag: DragPreview,
    /// Where the failed request was drawn, and its position.
    failure: Option<(Area, u32)>,
    image: Option<Image>,
    colors: Option<Colors>,
    /// The size and theme that the ground was painted with.
    ground: Option<(Size, Rc<Palette>)>,
}

/// The colours of all codes of a kind of rows in a theme.
struct Colors {
    is_sizes: bool,
    palette: Rc<Palette>,
    of_codes: Vec<[u8; 4]>,
    /// Those of moments that are far from the failure.
    far: Option<Vec<[u8; 4]>>,
}

impl Colors {
    fn new(is_sizes: bool, has_far: bool, palette: &Rc<Palette>) -> Self {
        let of_codes = match (is_sizes, has_far) {
            (true, _) => colors::of_sizes(palette),
            (false, true) => colors::of_addresses(palette, palette.unusable),
            // Gaps made no request fail, so they are no alarm.
            (false, false) => colors::of_addresses(palette, palette.too_small),
        };
        let far = has_far.then(|| colors::of_addresses(palette, palette.too_small));
        Self { is_sizes, palette: Rc::clone(palette), of_codes, far }
    }
}

/// The cells of an answer in the colours of a theme.
struct Image {
    canvas: HtmlCanvasElement,
    of: (Rc<Answer>, Rc<Palette>, Option<Window>),
    /// The size in pixels.
    size: (f64, f64),
}

impl Scene {
    /// Returns the answer, if it is a heatmap for this axis.
    pub fn map(&self) -> Option<&Heatmap> {
        match self.answer.as_ref() {
            Answer::Heatmap(map) if map.query.axis == self.axis && map.rows > 0 && map.columns > 0 => Some(map),
            _ => None,
        }
    }

    /// Returns the cell at a point in CSS pixels.
    pub fn cell(&self, point: (f64, f64)) -> Option<HeatmapCellQuery> {
        let (map, PlotArea { plot, extent, .. }) = (self.map()?, self.plot_area);
        let x = self.plot_area.x().value(point.0);
        if !plot.contains(point) || x < map.window.start.max(extent.start) || x >= map.window.end.min(extent.end) {
            return None;
        }
        let unit = map.window.length() / f64::from(map.columns);
        let column = ((x - map.window.start) / unit).floor();
        let start = map.window.start + column * unit;
        let row = match map.query.rows {
            HeatmapRows::Sizes => HeatmapRow::Size(((point.1 - plot.y) / plot.height * f64::from(map.rows)) as u32),
            HeatmapRows::Addresses { .. } => {
                let offset = self.plot_area.y().value(point.1) - map.from as f64;
                let number = (offset / map.row_bytes as f64).floor();
                if number < 0.0 || number >= f64::from(map.rows) {
                    return None;
                }
                let from = map.from + number as u64 * map.row_bytes;
                HeatmapRow::Addresses { from, to: from.saturating_add(map.row_bytes).min(map.total) }
            }
        };
        let window = Window { start, end: start + unit };
        Some(HeatmapCellQuery { axis: map.query.axis, window, row, part: map.query.part, needed: map.query.needed })
    }

    /// Returns the y coordinate of an offset, within the plot.
    fn y(&self, offset: u64) -> f64 {
        let plot = self.plot_area.plot;
        self.plot_area.y().pixel(offset as f64).within(plot.y, plot.bottom())
    }

    /// Returns the area of a cell.
    fn area(&self, map: &Heatmap, cell: &HeatmapCellQuery) -> Option<Area> {
        let (x, plot) = (self.plot_area.x(), self.plot_area.plot);
        let (left, right) = (x.pixel(cell.window.start).max(plot.x), x.pixel(cell.window.end).min(plot.right()));
        let (top, bottom) = match cell.row {
            HeatmapRow::Addresses { from, to } => (self.y(from), self.y(to)),
            HeatmapRow::Size(row) => {
                let height = plot.height / f64::from(map.rows);
                (plot.y + f64::from(row) * height, plot.y + f64::from(row + 1) * height)
            }
        };
        (right > left).then_some(Area { x: left, y: top, width: right - left, height: bottom - top })
    }

    fn draw_image(&self, surface: &mut dyn Surface, map: &Heatmap, image: &Image) {
        let (x, plot) = (self.plot_area.x(), self.plot_area.plot);
        let shown = self.plot_area.window;
        let (start, end) = (map.window.start.max(shown.start), map.window.end.min(shown.end));
        if start >= end {
            return;
        }
        let columns = |at: f64| (at - map.window.start) / map.window.length() * image.size.0;
        let (left, right) = (x.pixel(start).max(plot.x), x.pixel(end).min(plot.right()));
        let mut from = Area { x: columns(start), y: 0.0, width: columns(end) - columns(start), height: image.size.1 };
        let mut into = Area { x: left, width: right - left, ..plot };
        if let HeatmapRows::Addresses { .. } = map.query.rows {
            let (row, first, shown) = (map.row_bytes.max(1) as f64, map.from as f64, self.plot_area.bytes);
            let (start, end) = (shown.start.max(first), shown.end.min(first + image.size.1 * row));
            if start >= end {
                return;
            }
            (from.y, from.height) = ((start - first) / row, (end - start) / row);
            let y = self.plot_area.y();
            (into.y, into.height) = (y.pixel(start), y.pixel(end) - y.pixel(start));
        }
        surface.image(&image.canvas, from, into);
    }

    fn draw_groups(&self, surface: &mut dyn Surface, map: &Heatmap) {
        let (plot, palette) = (self.plot_area.plot, &self.palette);
        for group in &map.groups {
            let (top, bottom) = (self.y(group.offset), self.y(group.offset.saturating_add(group.size)));
            if top > plot.y {
                surface.horizontal(top, 0.0, plot.right(), false, palette.text.at(0.35));
            }
            let lines = self.names(group);
            let mut room = (((bottom - top) / LABEL) as usize).min(lines.len());
            if bottom - top >= LOWEST {
                room = room.max(1);
            }
            // What its addresses span takes two lines.
            if room + 1 == lines.len() {
                room -= 1;
            }
            let first = f64::midpoint(top, bottom) - (room as f64 - 1.0) * LABEL / 2.0;
            for (i, line) in lines.iter().take(room).enumerate() {
                let at = (plot.x - 8.0, first + i as f64 * LABEL);
                // The last digits of a long number tell more than its first.
                let shorten = if line.ends_with(|c: char| c.is_ascii_digit()) { fit_end } else { fit };
                if let Some(text) = shorten(surface, line, Font::Label, plot.x - 10.0) {
                    surface.text(&text, at, Align::End, Font::Label, palette.text_dim.into());
                }
            }
        }
    }

    /// Returns the lines of a group's label, the most telling first.
    fn names(&self, group: &HeatmapGroup) -> Vec<String> {
        let kind = if group.is_small { "small pool" } else { "large pool" };
        // A private pool has both too.
        let mut lines = if group.pool.is_private() {
            vec![pool_name(group.pool), kind.split(' ').next().unwrap_or(kind).to_owned()]
        } else {
            vec![kind.to_owned()]
        };
        if group.stream != Stream::default() {
            lines.push(stream_name(group.stream, &self.streams));
        }
        // All addresses that were ever reserved, which are more than the device has memory for at once.
        lines.push("spans".to_owned());
        lines.push(Bytes(group.size).to_string());
        lines
    }

    fn draw_sizes(&self, surface: &mut dyn Surface, map: &Heatmap) {
        let (plot, palette) = (self.plot_area.plot, &self.palette);
        let height = plot.height / f64::from(map.rows);
        // Where rows are low, only some are labelled.
        let every = (LABEL / height).ceil().max(1.0) as u32;
        for row in (0..map.rows).filter(|row| row % every == 0) {
            let size = Bytes(512_u64.checked_shl(row).unwrap_or(u64::MAX)).to_string();
            let middle = plot.y + (f64::from(row) + 0.5) * height;
            surface.text(&size, (plot.x - 8.0, middle), Align::End, Font::Label, palette.text_dim.into());
        }
    }
}

/// Returns where a window begins and ends, in columns.
fn columns_in(map: &Heatmap, window: Window) -> (f64, f64) {
    let unit = map.window.length() / f64::from(map.columns.max(1));
    let column = |x: f64| (x - map.window.start) / unit;
    (column(window.start), column(window.end))
}

impl Image {
    /// Draws the cells of an answer, one pixel each.
    fn new(
        answer: &Rc<Answer>,
        map: &Heatmap,
        colors: &Colors,
        near: Option<Window>,
        old: Option<Self>,
    ) -> Option<Self> {
        let (marked, height) = match map.query.rows {
            HeatmapRows::Addresses { .. } => (None, map.rows),
            HeatmapRows::Sizes => {
                let rows = map.rows.saturating_mul(colors::ROWS as u32);
                (Some(colors::with_marks(&map.cells, map.columns as usize)), rows)
            }
        };
        let codes = marked.as_deref().unwrap_or(&map.cells);
        let bytes = match (&colors.far, near) {
            (Some(far), Some(near)) => {
                colors::painted_around(codes, map.columns as usize, columns_in(map, near), &colors.of_codes, far)
            }
            _ => raster::painted(codes, &colors.of_codes),
        };
        let canvas = match old {
            Some(old) => old.canvas,
            None => document().create_element("canvas").ok()?.dyn_into::<HtmlCanvasElement>().ok()?,
        };
        // Another size makes a canvas anew: it only ever grows.
        if canvas.width() < map.columns {
            canvas.set_width(map.columns);
        }
        if canvas.height() < height {
            canvas.set_height(height);
        }
        let options = js_sys::Object::new();
        Reflect::set(&options, &"alpha".into(), &false.into()).ok()?;
        let context = canvas.get_context_with_context_options("2d", &options).ok()??;
        let context: CanvasRenderingContext2d = context.dyn_into().ok()?;
        let pixels = ImageData::new_with_u8_clamped_array_and_sh(Clamped(&bytes), map.columns, height).ok()?;
        context.put_image_data(&pixels, 0.0, 0.0).ok()?;
        let size = (f64::from(map.columns), f64::from(height));
        Some(Self { canvas, of: (Rc::clone(answer), Rc::clone(&colors.palette), near), size })
    }
}

impl HeatmapPicture {
    /// Returns what is at a point in CSS pixels.
    pub fn at(&self, point: (f64, f64)) -> Option<Hover> {
        if let Some((_, position)) = self.failure.filter(|(area, _)| area.contains(point)) {
            return Some(Hover::Failure(position));
        }
        self.scene.as_ref().and_then(|scene| scene.cell(point)).map(Hover::Cell)
    }
}

impl Picture for HeatmapPicture {
    fn draw(&mut self, painter: &mut dyn Painter, surface: &mut dyn Surface, size: Size) -> bool {
        const NOTHING: Transform = Transform { x: (1.0, 0.0), y: (1.0, 0.0) };
        let Some(scene) = &self.scene else { return true };
        // There are no shapes: the ground stays, and is covered where the surface is the painter's.
        let is_painted = |(old, palette): &(Size, Rc<Palette>)| *old == size && Rc::ptr_eq(palette, &scene.palette);
        if !self.ground.as_ref().is_some_and(is_painted) {
            if !painter.paint(scene.palette.background, NOTHING, Pixels::default()) {
                return false;
            }
            self.ground = Some((size, Rc::clone(&scene.palette)));
        }
        let whole = Area { x: 0.0, y: 0.0, width: size.width, height: size.height };
        surface.fill(whole, scene.palette.background.into());
        let (palette, plot) = (&scene.palette, scene.plot_area.plot);
        self.failure = None;
        let no_marks = Marks::default();
        let mut marks = &no_marks;
        if let Some(map) = scene.map() {
            marks = &scene.marks;
            let is_sizes = map.query.rows == HeatmapRows::Sizes;
            let near = scene.near.filter(|_| !is_sizes);
            let is_made = self.image.as_ref().is_some_and(|Image { of: (answer, palette, of), .. }| {
                Rc::ptr_eq(answer, &scene.answer) && Rc::ptr_eq(palette, &scene.palette) && *of == near
            });
            if !is_made {
                let has_far = near.is_some();
                let known = self.colors.take();
                let known = known
                    .filter(|known| {
                        let is_same = known.is_sizes == is_sizes && known.far.is_some() == has_far;
                        is_same && Rc::ptr_eq(&known.palette, &scene.palette)
                    })
                    .unwrap_or_else(|| Colors::new(is_sizes, has_far, &scene.palette));
                self.image = Image::new(&scene.answer, map, &known, near, self.image.take());
                self.colors = Some(known);
            }
            if let Some(image) = &self.image {
                scene.draw_image(surface, map, image);
            }
            match map.query.rows {
                HeatmapRows::Addresses { .. } => scene.draw_groups(surface, map),
                HeatmapRows::Sizes => scene.draw_sizes(surface, map),
            }
            let cell = match &self.hover {
                Some(Hover::Cell(cell)) => scene.area(map, cell),
                _ => None,
            };
            if let Some(area) = cell {
                // A cell may be as small as a pixel: its outline lies around it.
                let (width, height) = (area.width.max(1.0) + 4.0, area.height.max(1.0) + 4.0);
                let around = Area { x: area.x - 2.0, y: area.y - 2.0, width, height };
                surface.outline(around, 2.0, palette.background.into());
                surface.outline(around, 1.0, palette.text.into());
            }
        }
        let x = scene.plot_area.x();
        if let Some(range) = self.drag.range.or(marks.range) {
            range_band::draw(surface, x, plot, range, palette);
        }
        let mut labels = Labels::default();
        if let (Some(map), Some(ghost)) = (scene.map(), &scene.ghost) {
            let area = ghost.draw(surface, &scene.plot_area, map, &mut labels, palette);
            self.failure = area.map(|area| (area, ghost.position));
        }
        marks::along(surface, &scene.plot_area, scene.axis, marks, palette);
        if let Some(range) = self.drag.range.or(marks.range) {
            range_band::label(surface, (x, plot), scene.axis, range, &mut labels, palette);
        }
        losses::label(surface, &marks.losses, (x, plot), &mut labels, palette);
        marks::above(surface, &scene.plot_area, marks, palette);
        // Sizes have no other height.
        let is_across = scene.map().is_none_or(|map| map.query.rows == HeatmapRows::Sizes);
        let across = |band: Area| if is_across { Area { y: plot.y, height: plot.height, ..band } } else { band };
        DragPreview { band: self.drag.band.map(across), ..self.drag }.draw_band(surface, palette);
        true
    }
}

impl Draggable for HeatmapPicture {
    fn drag(&mut self) -> &mut DragPreview {
        &mut self.drag
    }
}

#[cfg(test)]
mod tests {
    use query::{HeatmapPart, HeatmapQuery, Packed};
    use trace::units::{Address, PoolId};

    use super::*;
    use crate::render::surface::log::SurfaceLog;

    const ADDRESSES: HeatmapRows = HeatmapRows::Addresses { rows: 100, offsets: None };

    fn group(offset: u64, size: u64, stream: i64) -> HeatmapGroup {
        HeatmapGroup {
            offset,
            size,
            segments: 1,
            address: Address(0),
            stream: Stream(stream),
            pool: PoolId::default(),
            is_small: offset == 0,
        }
    }

    fn scene(rows: HeatmapRows) -> Scene {
        let window = Window { start: 0.0, end: 1000.0 };
        let query =
            HeatmapQuery { axis: Axis::Event, window, columns: 600, rows, part: HeatmapPart::All, needed: None };
        let is_sizes = rows == HeatmapRows::Sizes;
        let map = Heatmap {
            query,
            window: Window { start: 0.0, end: 1024.0 },
            columns: 512,
            rows: if is_sizes { 12 } else { 100 },
            cells: Packed::default(),
            from: 0,
            row_bytes: if is_sizes { 0 } else { 1000 },
            total: if is_sizes { 0 } else { 99_500 },
            groups: if is_sizes { vec![] } else { vec![group(0, 10_000, 0), group(10_000, 89_500, 7)] },
        };
        let plot = Area { x: 100.0, y: 20.0, width: 500.0, height: 200.0 };
        let bytes = Window { start: 0.0, end: 100_000.0 };
        let plot_area = PlotArea { grows_down: true, ..PlotArea::at_rest(plot, window, bytes) };
        let palette = Rc::new(Palette::dark());
        let (axis, marks) = (Axis::Event, Marks::default());
        Scene {
            answer: Rc::new(Answer::Heatmap(map)),
            palette,
            plot_area,
            axis,
            marks,
            ghost: None,
            near: None,
            streams: Vec::new(),
        }
    }

    #[test]
    fn a_point_is_in_a_cell() {
        let scene = scene(ADDRESSES);
        let cell = scene.cell((351.0, 219.5)).unwrap();
        assert_eq!(cell.window, Window { start: 502.0, end: 504.0 });
        assert_eq!(cell.row, HeatmapRow::Addresses { from: 99_000, to: 99_500 });
        assert_eq!(scene.cell((99.0, 100.0)), None);
        let area = scene.area(scene.map().unwrap(), &cell).unwrap();
        assert_eq!((area.x, area.width, area.y.round()), (351.0, 1.0, 218.0));
        let sizes = self::scene(HeatmapRows::Sizes);
        assert_eq!(sizes.cell((100.0, 20.0 + 200.0 / 12.0 * 2.5)).unwrap().row, HeatmapRow::Size(2));
    }

    #[test]
    fn a_part_of_the_addresses_fills_the_plot() {
        let mut scene = scene(ADDRESSES);
        scene.plot_area.bytes = Window { start: 50_000.0, end: 60_000.0 };
        let row = |y: f64| scene.cell((351.0, y)).unwrap().row;
        assert_eq!(row(20.5), HeatmapRow::Addresses { from: 50_000, to: 51_000 });
        assert_eq!(row(219.5), HeatmapRow::Addresses { from: 59_000, to: 60_000 });
        let mut log = SurfaceLog::default();
        scene.draw_groups(&mut log, scene.map().unwrap());
        let texts: Vec<_> = log.0.iter().filter(|line| line.starts_with("text")).collect();
        assert_eq!(texts[0], "text \"large pool\" at 92,99 End", "in the middle of what is visible: {texts:?}");
    }

    #[test]
    fn groups_have_as_many_lines_as_there_is_room() {
        let scene = scene(ADDRESSES);
        let mut log = SurfaceLog::default();
        scene.draw_groups(&mut log, scene.map().unwrap());
        let texts: Vec<_> = log.0.iter().filter(|line| line.starts_with("text")).collect();
        assert_eq!(
            texts,
            [
                "text \"small pool\" at 92,30 End",
                "text \"large pool\" at 92,109 End",
                "text \"stream 7\" at 92,123 End",
                "text \"spans\" at 92,137 End",
                "text \"87.4 KiB\" at 92,151 End"
            ]
        );
    }

    #[test]
    fn the_columns_around_a_failure_are_those_that_show_any_of_it() {
        let scene = scene(ADDRESSES);
        let columns = |start, end| columns_in(scene.map().unwrap(), Window { start, end });
        assert_eq!(columns(101.0, 105.0), (50.5, 52.5), "a column has two events");
        assert_eq!(columns(-50.0, 4.0), (-25.0, 2.0), "its middle is out of view");
    }
}
