//! A picture of a trace: memory over time, with its peak and its verdict, for places where a link is pasted.
//!
//! It is drawn from a recording's preview alone, so that a server needs a few tens of KiB of a shared trace for it.

mod canvas;
mod text;

use query::{Answer, Overview};
use session::preview::Preview;
use trace::units::Bytes;

use canvas::{Canvas, Color, Rect};
use text::Font;

/// The size that chats and trackers show without cutting it, in pixels.
pub const SIZE: (u32, u32) = (1_200, 630);

const BACKGROUND: Color = [255, 255, 255];
const INK: Color = [24, 30, 38];
const FAINT: Color = [98, 108, 122];
const FRAME: Color = [214, 219, 226];
/// The colours of the page's light theme: allocated blue, waiting amber, reserved slate, failures red.
const ALLOCATED: Color = [78, 121, 197];
const WAITING: Color = [232, 163, 61];
const RESERVED: Color = [70, 84, 104];
const FAILED: Color = [200, 48, 48];

/// The distance of everything from the edges, in pixels.
const MARGIN: u32 = 56;
/// Where the plot is, in pixels.
const PLOT: Rect = Rect { x: MARGIN, y: 268, width: SIZE.0 - 2 * MARGIN, height: 290 };
/// The size of the flag that marks a failure, in pixels.
const FLAG: u32 = 14;
/// The most lines of the verdict.
const VERDICT_LINES: usize = 3;

/// Draws the picture and returns it as PNG.
pub fn draw(preview: &Preview) -> Result<Vec<u8>, png::EncodingError> {
    let mut canvas = Canvas::new(SIZE, BACKGROUND);
    let headline = preview.headline();
    let font = Font::new();
    let width = SIZE.0 - 2 * MARGIN;
    let title = font.fit(&headline.title, 40.0, width);
    font.write(&mut canvas, (MARGIN, 92), 40.0, INK, &title);
    for (line, y) in font.wrap(&headline.text, 26.0, width, VERDICT_LINES).iter().zip((142_u32..).step_by(38)) {
        font.write(&mut canvas, (MARGIN, y), 26.0, FAINT, line);
    }
    if let Some(overview) = overview(preview) {
        let ceiling = plot(&mut canvas, overview);
        let label = format!("{} reserved", Bytes(ceiling));
        font.write(&mut canvas, (PLOT.x + 10, PLOT.y + 28), 20.0, FAINT, &label);
    }
    canvas.outline(PLOT, FRAME);
    font.write(&mut canvas, (MARGIN, SIZE.1 - 26), 20.0, FAINT, "Vramscope: GPU memory over time");
    let legend = [(ALLOCATED, "allocated"), (WAITING, "waiting for a stream"), (RESERVED, "reserved")];
    let mut x = SIZE.0 - MARGIN;
    for (color, name) in legend.into_iter().rev() {
        x = x.saturating_sub(font.width(name, 20.0));
        font.write(&mut canvas, (x, SIZE.1 - 26), 20.0, FAINT, name);
        x = x.saturating_sub(24);
        canvas.fill(Rect { x, y: SIZE.1 - 40, width: 14, height: 14 }, color);
        x = x.saturating_sub(24);
    }
    canvas.png()
}

/// Returns the totals over the whole run of the device that matters most.
fn overview(preview: &Preview) -> Option<&Overview> {
    let device = preview.summary().telling_device()?;
    preview.answers().find_map(|(of, _, answer)| match answer {
        Answer::Overview(overview) if of == device => Some(overview),
        _ => None,
    })
}

/// Draws the curves. Returns the largest reserved total, at which the plot ends.
fn plot(canvas: &mut Canvas, overview: &Overview) -> u64 {
    let ceiling = overview.reserved.iter().copied().max().unwrap_or(0).max(1);
    let height = |bytes: u64| (u128::from(bytes) * u128::from(PLOT.height - 30) / u128::from(ceiling)) as u32;
    let bottom = PLOT.y + PLOT.height;
    let mut before = None;
    for column in 0..PLOT.width {
        // A column of the picture shows the largest value of its part of the curve.
        let at = |values: &[u64]| {
            let count = values.len() as u64;
            let from = (u64::from(column) * count / u64::from(PLOT.width)) as usize;
            let to = ((u64::from(column) + 1) * count).div_ceil(u64::from(PLOT.width)) as usize;
            values.get(from..to.max(from + 1)).into_iter().flatten().copied().max().unwrap_or(0)
        };
        let x = PLOT.x + column;
        let (allocated, active) = (height(at(&overview.allocated)), height(at(&overview.active)));
        canvas.fill(Rect { x, y: bottom - active.max(allocated), width: 1, height: active.max(allocated) }, WAITING);
        canvas.fill(Rect { x, y: bottom - allocated, width: 1, height: allocated }, ALLOCATED);
        let line = bottom - height(at(&overview.reserved)).max(2);
        let (top, end) = before.map_or((line, line), |before: u32| (line.min(before), line.max(before)));
        canvas.fill(Rect { x, y: top, width: 1, height: end - top + 2 }, RESERVED);
        before = Some(line);
    }
    let length = overview.window.end - overview.window.start;
    for (at, _) in overview.ooms.iter().take(PLOT.width as usize) {
        let share = ((at - overview.window.start) / length).clamp(0.0, 1.0);
        // Casts of floating point saturate, and turn NaN into 0.
        let x = PLOT.x + (share * f64::from(PLOT.width - 3)) as u32;
        canvas.fill(Rect { x, y: PLOT.y, width: 3, height: PLOT.height }, FAILED);
        // The flag of a failure at the end points back.
        let flag = x.min(PLOT.x + PLOT.width - FLAG);
        canvas.fill(Rect { x: flag, y: PLOT.y, width: FLAG, height: FLAG }, FAILED);
    }
    ceiling
}

#[cfg(test)]
mod tests {
    use format::{EventColumns, Header, Writer};
    use session::preview;

    use super::*;

    /// A preview of the program's own sample.
    fn sample() -> Preview {
        let mut importer = format::import::Importer::new(trace::limits::ImportLimits::default());
        importer.push(&crate::workloads::sample::snapshot()).unwrap();
        let imported = importer.finish().unwrap();
        let header = Header { name: "train <b>\u{202e}\u{0}é".to_owned(), ..Header::default() };
        preview::read(&preview::write(&header, &imported.snapshot)).unwrap()
    }

    #[test]
    fn a_trace_is_drawn_in_its_colours() {
        let picture = draw(&sample()).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&picture)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), SIZE);
        let count = |color: Color| pixels.chunks_exact(3).filter(|pixel| **pixel == color).count();
        for (color, least) in [(ALLOCATED, 20_000), (RESERVED, 1_000), (FAILED, 100), (INK, 500), (FAINT, 500)] {
            assert!(count(color) > least, "{color:?}: {}", count(color));
        }
        assert!(picture.len() < 200_000, "{} bytes", picture.len());
    }

    #[test]
    fn a_recording_without_events_is_drawn_too() {
        let mut out = Vec::new();
        let header = Header::default();
        let mut writer = Writer::new(&header, &mut out);
        writer.events(0, 0, &EventColumns::default(), &mut out);
        let empty = trace::Snapshot::default();
        if let Some(preview) = preview::read(&preview::write(&header, &empty)) {
            draw(&preview).unwrap();
        }
    }
}
