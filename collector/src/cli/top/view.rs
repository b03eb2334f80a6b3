//! Draws a scene: for each device its memory over time, the lines that held most, and what is wrong.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph, Wrap};
use trace::text::Escaped;
use trace::units::{Bytes, Count, Micros, counted};

use super::scene::{Held, Scene};
use crate::remote::{DeviceStats, Listed, ListedDevice};

/// The least height of a plot. Devices that have no room are left out, and counted.
const PLOT: u16 = 8;
/// Below this height, nothing can be read in a plot.
const LEAST_PLOT: u16 = 10;
/// Below this width, a device's model is not named.
const NARROW: u16 = 80;
/// The cells of a bar that stands for all of something.
const BAR: usize = 10;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const ALLOCATED: Style = Style::new().fg(Color::Blue);
const RESERVED: Style = Style::new().fg(Color::Gray);
const FAILED: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// Draws a scene on the whole terminal.
pub(super) fn draw(frame: &mut Frame<'_>, scene: &Scene) {
    let area = frame.area();
    let Some(session) = &scene.session else {
        let text = if scene.trouble.is_empty() { "Asking the server …" } else { &scene.trouble };
        let lines = vec![
            Line::styled(format!("Vramscope at {}", scene.server), BOLD),
            Line::raw(text),
            Line::styled(KEYS, DIM),
        ];
        return frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
    };
    // Half of the terminal is for words, at most.
    let held = scene.held.iter().max_by_key(|held| held.peak);
    let words = Paragraph::new(held.map(words).unwrap_or_default()).wrap(Wrap { trim: false });
    let wanted = held.map_or(0, |held| wrapped_lines(held, area.width));
    // A plot that is too low to be read leaves its room to the words.
    let room = area.height.saturating_sub(2);
    let height = wanted.min(if room < LEAST_PLOT { room } else { room / 2 });
    let rows = [Constraint::Length(1), Constraint::Min(0), Constraint::Length(height), Constraint::Length(1)];
    let [title, plots, below, keys] = Layout::vertical(rows).areas(area);
    frame.render_widget(Paragraph::new(heading(session)), title);
    draw_devices(frame, plots, session, &scene.stats);
    frame.render_widget(words, below);
    let (number, count) = scene.place;
    let place = if count > 1 { format!("   {number} of {count}") } else { String::new() };
    let last =
        if scene.trouble.is_empty() { format!("{KEYS}{place}") } else { format!("{}   {KEYS}{place}", scene.trouble) };
    frame.render_widget(Paragraph::new(last).style(DIM), keys);
}

/// What the keys do.
const KEYS: &str = "q quit   ← → other processes";

/// Returns the line about a session.
fn heading(session: &Listed) -> Line<'static> {
    let rank = session.rank.map(|rank| format!(" rank {rank}")).unwrap_or_default();
    let rate = if session.is_live() {
        format!(", {}/s", Count(session.events_per_second.max(0.0) as u64))
    } else {
        String::new()
    };
    let mut parts = vec![
        Span::styled(format!("{}{rank}", Escaped(session.title())), BOLD),
        Span::raw(format!("  {}  {}{rate}", Escaped(&session.state), counted(session.events, "event"))),
    ];
    if session.lost > 0 {
        parts.push(Span::raw(format!(", {} lost", Count(session.lost))));
    }
    if session.oom > 0 {
        parts.push(Span::styled("  out of memory", FAILED));
    }
    Line::from(parts)
}

/// Draws the devices below each other, as many as there is room for.
fn draw_devices(frame: &mut Frame<'_>, area: Rect, session: &Listed, stats: &[DeviceStats]) {
    if area.height < PLOT / 2 {
        return;
    }
    let room = usize::from(area.height / PLOT).max(1);
    let shown = session.devices.iter().take(room).collect::<Vec<_>>();
    let left = session.devices.len() - shown.len();
    let areas = Layout::vertical(shown.iter().map(|_| Constraint::Fill(1))).split(area);
    for (index, (device, area)) in shown.iter().zip(areas.iter()).enumerate() {
        let more = if left > 0 && index + 1 == shown.len() { format!(", {left} more below") } else { String::new() };
        let of_device = stats.iter().find(|stats| stats.number == device.number);
        draw_device(frame, *area, (device, &more), of_device);
    }
}

/// Draws the memory of a device over time, below the device's capacity.
fn draw_device(frame: &mut Frame<'_>, area: Rect, (device, more): (&ListedDevice, &str), stats: Option<&DeviceStats>) {
    let ListedDevice { number, name, capacity, allocated, reserved } = device;
    let is_narrow = area.width < NARROW;
    let share = *reserved as f64 * 100.0 / (*capacity).max(1) as f64;
    let of = match (*capacity, is_narrow) {
        (0, _) => String::new(),
        (capacity, true) => format!(" of {}", Bytes(capacity)),
        (capacity, false) => format!(" of {} ({share:.0} %)", Bytes(capacity)),
    };
    let name = if name.is_empty() || is_narrow { String::new() } else { format!(" {}", Escaped(name)) };
    let title = Line::from(vec![
        Span::styled(format!(" GPU {number}{name}  "), BOLD),
        Span::styled(format!("reserved {}{of}", Bytes(*reserved)), RESERVED),
        Span::styled(format!("  allocated {}", Bytes(*allocated)), ALLOCATED),
        Span::raw(format!("{more} ")),
    ]);
    let points = stats.map(|stats| stats.points.as_slice()).unwrap_or_default();
    let (first, last) = (points.first().map_or(0, |point| point.0), points.last().map_or(0, |point| point.0));
    let seconds = |time: i64| time.saturating_sub(first) as f64 / 1e6;
    let [allocated, reserved]: [Vec<(f64, f64)>; 2] =
        [|point: &(i64, u64, u64, u64)| point.1, |point: &(i64, u64, u64, u64)| point.3]
            .map(|bytes| points.iter().map(|point| (seconds(point.0), bytes(point) as f64)).collect());
    let peak = stats.map_or(0, |stats| stats.peak_reserved.max(stats.peak_allocated));
    let top = (*capacity).max(peak).max(1);
    let line = |points, style| {
        Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).style(style).data(points)
    };
    let span = seconds(last);
    let labels = ["0 s".to_owned(), Micros(last.saturating_sub(first)).to_string()];
    let chart = Chart::new(vec![line(&reserved, RESERVED), line(&allocated, ALLOCATED)])
        .block(Block::bordered().title(title))
        .x_axis(Axis::default().bounds([0.0, span.max(f64::MIN_POSITIVE)]).labels(labels).style(DIM))
        .y_axis(Axis::default().bounds([0.0, top as f64]).labels(["0".to_owned(), Bytes(top).to_string()]).style(DIM));
    frame.render_widget(chart, area);
}

/// Returns how many lines the words about a device take when they are folded.
fn wrapped_lines(held: &Held, width: u16) -> u16 {
    let lines = words(held).iter().map(|line| line.width().div_ceil(usize::from(width).max(1)).max(1)).sum::<usize>();
    u16::try_from(lines).unwrap_or(u16::MAX)
}

/// Returns what the trace of a device says: the verdict, and the lines that held its peak.
fn words(held: &Held) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (index, line) in held.brief.lines().enumerate() {
        let style = if index == 0 { BOLD } else { Style::new() };
        lines.push(Line::styled(Escaped(line).to_string(), style));
    }
    lines.push(Line::styled(format!("Device {}: live at the peak, {}", held.device, Bytes(held.peak)), DIM));
    for line in &held.lines {
        let share = line.bytes as f64 / held.peak.max(1) as f64;
        // Casts of floating point saturate.
        let bar = "█".repeat(((share * BAR as f64).round() as usize).min(BAR));
        lines.push(Line::from(vec![
            Span::raw(format!("{:>10} {:>4.0} % ", Bytes(line.bytes).to_string(), share * 100.0)),
            Span::styled(format!("{bar:<BAR$}"), ALLOCATED),
            Span::raw(format!("  {}", Escaped(&line.label))),
        ]));
    }
    lines
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use report::LineReport;

    use super::*;

    fn scene() -> Scene {
        let device = |number| ListedDevice {
            number,
            name: "H100".to_owned(),
            capacity: 80 << 30,
            allocated: 8 << 30,
            reserved: 20 << 30,
        };
        let session = Listed {
            job: "train\u{1b}.py".to_owned(),
            state: "live".to_owned(),
            rank: Some(3),
            events: 1_200,
            lost: 7,
            oom: 1,
            events_per_second: 41.5,
            devices: vec![device(0), device(1)],
            ..Listed::default()
        };
        let points = (0..100).map(|i| (i * 1_000_000, 1 << 30, 1 << 30, (10 + i as u64 / 10) << 30)).collect();
        let stats = DeviceStats { number: 0, points, peak_reserved: 20 << 30, peak_allocated: 8 << 30 };
        let line = LineReport { label: "forward  models/gpt.py:24".to_owned(), bytes: 6 << 30, count: 2 };
        let held =
            Held { device: 0, peak: 8 << 30, lines: vec![line], brief: "Full: 1 GiB asked\n  help: less".to_owned() };
        Scene { session: Some(session), place: (2, 8), stats: vec![stats], held: vec![held], ..Scene::default() }
    }

    fn drawn(scene: &Scene, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, scene)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn a_job_is_drawn_with_its_curve_its_lines_and_its_verdict() {
        let text = drawn(&scene(), 100, 30);
        for wanted in [
            "train\\u{1b}.py rank 3  live  1,200 events, 41/s, 7 lost  out of memory",
            " GPU 0 H100  reserved 20.0 GiB of 80.0 GiB (25 %)  allocated 8.00 GiB",
            " GPU 1 H100",
            "80.0 GiB",
            "Full: 1 GiB asked",
            "  6.00 GiB   75 % ████████    forward  models/gpt.py:24",
            "q quit   ← → other processes   2 of 8",
        ] {
            assert!(text.contains(wanted), "{wanted} is missing:\n{text}");
        }
        assert!(text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "no curve:\n{text}");
    }

    #[test]
    fn a_small_terminal_has_the_first_device_and_any_size_is_drawn() {
        let text = drawn(&scene(), 60, 18);
        assert!(text.contains("GPU 0  reserved 20.0 GiB of 80.0 GiB  allocated 8.00 GiB"), "{text}");
        assert!(!text.contains("GPU 1"), "{text}");
        let low = drawn(&scene(), 60, 8);
        assert!(
            !low.contains("GPU 0") && low.contains("Full: 1 GiB asked") && low.contains("models/gpt.py:24"),
            "{low}"
        );
        for (width, height) in [(1, 1), (3, 40), (300, 2), (20, 5)] {
            drawn(&scene(), width, height);
        }
        let nothing = Scene { trouble: "There is no job x yet.".to_owned(), ..Scene::default() };
        assert!(drawn(&nothing, 60, 5).contains("There is no job x yet."));
    }
}
