//! Moves answers from before the oldest events were dropped to their new positions, so that the picture stays in place
//! until the next answer arrives.

use query::{Answer, Axis, Packed, Window};

use super::live::moved;
use crate::worker::message::Trim;

/// Returns the answer with its positions and coordinates shifted, or `None` if it can't be shifted.
pub fn rebased(answer: &Answer, trim: &Trim, axis: Axis) -> Option<Answer> {
    let by = match axis {
        Axis::Time => -trim.us,
        Axis::Event => -f64::from(trim.events),
    };
    let lower = |position: u32| position.saturating_sub(trim.events);
    let to = |window: Window| moved(window, by);
    Some(match answer {
        Answer::Timeline(timeline) if timeline.query.axis == axis => {
            let mut timeline = timeline.clone();
            timeline.query.window = to(timeline.query.window);
            let positions: Vec<u32> = timeline.position.iter().map(|position| lower(*position)).collect();
            timeline.position = Packed::from(positions);
            Answer::Timeline(timeline)
        }
        Answer::Heatmap(map) if map.query.axis == axis => {
            let mut map = map.clone();
            (map.window, map.query.window) = (to(map.window), to(map.query.window));
            Answer::Heatmap(map)
        }
        Answer::Overview(overview) => {
            let mut overview = overview.clone();
            overview.window = to(overview.window);
            for (x, position) in &mut overview.ooms {
                (*x, *position) = (*x + by, lower(*position));
            }
            for (span, _) in &mut overview.annotations {
                *span = to(*span);
            }
            for loss in &mut overview.losses {
                (loss.span, loss.position) = (to(loss.span), lower(loss.position));
                for sample in &mut loss.samples {
                    sample.x += by;
                }
            }
            Answer::Overview(overview)
        }
        Answer::State(state) => {
            let mut state = state.clone();
            state.position = lower(state.position);
            state.time_us -= trim.us;
            Answer::State(state)
        }
        _ => return None,
    })
}
