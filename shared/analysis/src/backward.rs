//! Where a program called what has no stack, which is most often the backward pass.
//!
//! Autograd runs operators of the backward pass on threads of its own, where no Python code runs: with Python frames only, their
//! allocations have no stack. The program's own thread waits meanwhile. So the call lies between the last line that allocated
//! before them and the first one after them, in the function that both lines were called from.

use rustc_hash::FxHashMap;

use query::folding::is_python;
use trace::DeviceTrace;
use trace::event::Action;
use trace::frames::{Frame, FrameId, StackId, Symbols};

use super::site::frame_label;

/// Returns where most of the memory without a stack was requested: `train_gpt  models/make.py:88 to 90`, or one line if both are the
/// same. `None` if nothing lacks a stack, or no two stacks around it have a function in common.
pub fn call(trace: &DeviceTrace, symbols: &Symbols) -> Option<String> {
    let events = &trace.events;
    let rows = events.action.iter().zip(events.stack.iter()).zip(events.size.iter());
    let mut bytes_of: FxHashMap<(Frame, u32), u64> = FxHashMap::default();
    // The last stack, and the bytes that were requested without one since.
    let (mut before, mut missing) = (None, 0_u64);
    for ((action, stack), size) in rows {
        if action != Action::Alloc as u8 {
            continue;
        }
        if stack == 0 {
            missing = missing.saturating_add(size);
            continue;
        }
        let after = StackId(stack);
        if let (Some(before), true) = (before, missing > 0)
            && let Some(between) = between(symbols, before, after)
        {
            let bytes = bytes_of.entry(between).or_default();
            *bytes = bytes.saturating_add(missing);
        }
        (before, missing) = (Some(after), 0);
    }
    let ((frame, last), _) = bytes_of.into_iter().max_by_key(|((frame, last), bytes)| (*bytes, frame.line, *last))?;
    let label = frame_label(symbols, frame);
    Some(if frame.line < last { format!("{label} to {last}") } else { label })
}

/// Returns the frame that two stacks were called from, with the line of the first one, and the line of the second one.
fn between(symbols: &Symbols, before: StackId, after: StackId) -> Option<(Frame, u32)> {
    let frames = |stack| symbols.stack(stack).iter().rev().copied();
    let mut common = None;
    for (one, other) in frames(before).zip(frames(after)) {
        let (frame, next) = (symbols.frame(one), symbols.frame(other));
        let is_same_function = (frame.name, frame.filename) == (next.name, next.filename);
        if !is_same_function || !is_shown(symbols, one) {
            break;
        }
        // A loop leads from a later line to an earlier one.
        common = Some((frame, next.line.max(frame.line)));
        if one != other {
            break;
        }
    }
    common
}

/// Whether a frame is one of Python, and known.
fn is_shown(symbols: &Symbols, id: FrameId) -> bool {
    !symbols.is_lost_frame(id) && is_python(&symbols.text(symbols.frame(id).filename))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the call in a trace of these events.
    fn found(lines: &str) -> Option<String> {
        let snapshot = trace::testing::snapshot(lines);
        call(&snapshot.devices[0], &snapshot.symbols)
    }

    #[test]
    fn a_call_lies_between_the_lines_around_it() {
        let forward = "forward@/m/gpt.py:54 train@/m/train.py:88 main@/m/train.py:120";
        let step = "step@/x/site-packages/torch/optim/adam.py:9 train@/m/train.py:90 main@/m/train.py:120";
        let elsewhere = "load@/m/data.py:3 main@/m/train.py:110";
        let alloc = |address: u64, size: u64, stack: &str| format!("alloc {address:#x} {size} {stack}\n");
        let cases = [
            (vec![(100, forward), (500, ""), (300, ""), (100, step)], Some("train  m/train.py:88 to 90")),
            // Between the optimizer and the next step, the loop goes back.
            (vec![(100, step), (500, ""), (100, forward)], Some("train  m/train.py:90")),
            // What requests most decides.
            (
                vec![(100, elsewhere), (10, ""), (100, forward), (500, ""), (100, step)],
                Some("train  m/train.py:88 to 90"),
            ),
            (vec![(100, forward), (500, ""), (100, forward)], Some("forward  m/gpt.py:54")),
            (vec![(100, forward), (500, ""), (100, "other@/m/other.py:1")], None),
            (vec![(100, forward), (500, "")], None),
            (vec![(100, forward), (100, step)], None),
            (vec![], None),
        ];
        for (events, want) in cases {
            let lines: String =
                events.iter().zip(1..).map(|((size, stack), i)| alloc(0x1000000 * i, *size, stack)).collect();
            assert_eq!(found(&lines).as_deref(), want, "{lines}");
        }
    }
}
