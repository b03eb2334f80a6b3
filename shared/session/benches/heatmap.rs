//! Measures heatmaps: the first picture of a whole trace, zooming into it, panning, and single cells.
//!
//! `cargo bench -p session --bench heatmap -- FILE...` prints a line for each kind of question: the median and the longest
//! time.

mod support;

use std::time::Instant;

use query::{Answer, Axis, HeatmapCellQuery, HeatmapPart, HeatmapQuery, HeatmapRow, HeatmapRows, Query, Window};
use session::Session;

fn main() {
    for file in support::files() {
        println!("{file}");
        match support::import(&file) {
            Ok(imported) => measure(Session::build(imported, &mut |_| {})),
            Err(error) => println!("  {error}"),
        }
    }
}

fn measure(mut session: Session) {
    let devices = &session.summary().devices;
    let Some(device) = (0..devices.len()).max_by_key(|&i| devices[i].events) else { return };
    let (event, time) = (devices[device].event, devices[device].time);
    let addresses = HeatmapRows::Addresses { rows: 350, offsets: None };
    let map = |axis, window, rows| {
        Query::Heatmap(HeatmapQuery { axis, window, columns: 1400, rows, part: HeatmapPart::All, needed: None })
    };
    let first = map(Axis::Event, event, addresses);
    let mut ask = |name: &str, queries: Vec<Query>| {
        let mut row_bytes = 1;
        let mut times: Vec<f64> = queries
            .iter()
            .map(|query| {
                let start = Instant::now();
                let answer = session.answer(device, query);
                if let Answer::Heatmap(map) = std::hint::black_box(answer) {
                    row_bytes = row_bytes.max(map.row_bytes);
                }
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let worst = times.last().copied().unwrap_or_default();
        println!("  {name:<28} {median:>9.2} ms, at worst {worst:>9.2} ms of {}", times.len());
        row_bytes
    };
    let row_bytes = ask("first map of addresses", vec![first.clone()]);
    ask("the same again", vec![first]);
    ask("first map by time", vec![map(Axis::Time, time, addresses)]);
    ask("first map of sizes", vec![map(Axis::Event, event, HeatmapRows::Sizes)]);
    for share in [0.5, 0.25, 0.1, 0.03, 0.01, 0.001] {
        let windows = (0..10).map(|i| {
            let start = event.end * (1.0 - share) * f64::from(i) / 9.0;
            map(Axis::Event, Window { start, end: start + event.end * share }, addresses)
        });
        ask(&format!("addresses, {share} of it"), windows.collect());
    }
    let column = (event.end / 1400.0).log2().ceil().exp2();
    let cells = (0..100_u32).map(|i| {
        let start = (event.end * f64::from(i) / 100.0 / column).floor() * column;
        let from = u64::from(i * 37 % 350) * row_bytes;
        Query::HeatmapCell(HeatmapCellQuery {
            axis: Axis::Event,
            window: Window { start, end: start + column },
            row: HeatmapRow::Addresses { from, to: from + row_bytes },
            part: HeatmapPart::All,
            needed: None,
        })
    });
    ask("cells", cells.collect());
}
