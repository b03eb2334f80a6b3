//! From the folded values of a whole file to a snapshot: the layouts of torch 1.13 to 2.15.
//!
//! Everything but `segments` or `device_traces` is optional, and what is not known is left out. A file that is cut off
//! is read the same way, from what was complete.

use super::error::{Checked, ImportError};
use super::findings::{self, Notes};
use super::fold::{Fold, Rows, entries, has_key};
use super::value::{Kind, Value};
use super::{settings, words};
use crate::finding::Finding;
use crate::frames::{StackId, StrId};
use crate::numbered::Numbered;
use crate::trace::{Annotation, DeviceTrace, Events, Snapshot, Stage};
use crate::units::Count;

/// What a reader leaves behind.
pub(super) struct Read {
    pub(super) fold: Fold,
    pub(super) root: Option<Value>,
    /// Where the (decompressed) bytes end, if before the end.
    pub(super) cut_at: Option<u64>,
    pub(super) is_packed: bool,
}

/// Makes the snapshot, and the findings about it.
pub(super) fn assemble(read: Read) -> Result<(Snapshot, Vec<Finding>), ImportError> {
    let Read { mut fold, root, cut_at, is_packed } = read;
    let mut notes = Notes { cut_at, is_packed, ..Notes::default() };
    let pairs = top(&mut fold, root, cut_at.is_some())?;
    let at_end = |fault: Box<super::error::Fault>| fault.at("snapshot", cut_at.unwrap_or(0));
    let snapshot = read_top(fold, &pairs, &mut notes).map_err(at_end)?;
    let findings = findings::findings(&snapshot, &notes);
    Ok((snapshot, findings))
}

/// The entries at the top; a plain list is that of the segments (torch 1.13, and `torch.cuda.memory_snapshot()`).
fn top(fold: &mut Fold, root: Option<Value>, is_cut: bool) -> Result<Vec<Value>, ImportError> {
    let refused = ImportError::NotASnapshot(match is_cut {
        true => "it ends before any part of it is complete",
        false => "it holds neither segments nor device_traces",
    });
    let Some(root) = root else { return Err(refused) };
    if let Some(pairs) = fold.dict(root) {
        let known = has_key(&pairs, words::SEGMENTS) || has_key(&pairs, words::DEVICE_TRACES);
        return if known { Ok(pairs) } else { Err(refused) };
    }
    let first = match root {
        Value::Stack(StackId(0)) => None,
        Value::Node(id) => match fold.kind(id) {
            Kind::EmptyList => None,
            Kind::List(place) => fold.kept.get(place).first().copied(),
            _ => return Err(refused),
        },
        _ => return Err(refused),
    };
    // An empty list is what 1.13 gives before the first allocation; one that is cut says nothing.
    let known = first.map_or(!is_cut, |segment| has_key(fold.dict_entries(segment), words::TOTAL_SIZE));
    if known { Ok(vec![Value::Str(words::SEGMENTS), root]) } else { Err(refused) }
}

fn read_top(mut fold: Fold, pairs: &[Value], notes: &mut Notes) -> Checked<Snapshot> {
    let mut devices: Numbered<DeviceTrace> = Numbered::default();
    let mut rows: Vec<(i64, Rows)> = Vec::new();
    let mut annotations = Vec::new();
    let mut snapshot = Snapshot::default();
    for (key, value) in entries(pairs) {
        match key {
            words::SEGMENTS => read_segments(&mut fold, value, &mut devices)?,
            words::DEVICE_TRACES => rows = traces(&mut fold, value),
            words::ALLOCATOR_SETTINGS => snapshot.settings = settings::settings(&mut fold, value),
            words::EXTERNAL_ANNOTATIONS => annotations = read_annotations(&mut fold, value),
            words::HOST_SEGMENTS => notes.host_segments += count(&fold, value),
            words::HOST_TRACES => notes.host_entries += count(&fold, value),
            _ => {}
        }
        notes.last_key = Some(key);
    }
    for (device, events) in by_device(&mut fold, rows)? {
        devices.entry(device).events = events;
    }
    for (device, annotation) in annotations {
        match devices.get_mut(device) {
            Some(trace) => trace.annotations.push(annotation),
            None => notes.homeless_annotations += 1,
        }
    }
    notes.malformed = fold.malformed;
    snapshot.devices = devices
        .take_sorted()
        .into_iter()
        .map(|(device, mut trace)| {
            trace.device = device;
            trace.segments.sort_by_key(|segment| segment.address);
            trace
        })
        .collect();
    snapshot.symbols = fold.symbols;
    snapshot.tags = fold.tags;
    Ok(snapshot)
}

fn read_segments(fold: &mut Fold, value: Value, devices: &mut Numbered<DeviceTrace>) -> Checked {
    for value in fold.items(value) {
        match super::segments::segment(fold, value)? {
            Some((device, segment)) => devices.entry(device).segments.push(segment),
            None => fold.malformed += 1,
        }
    }
    Ok(())
}

/// The rows of each device that has any, by the device's place in the list.
fn traces(fold: &mut Fold, value: Value) -> Vec<(i64, Rows)> {
    let lists = match value {
        // A list of entries where a list of such lists should be: that of one device.
        Value::Node(id) if matches!(fold.kind(id), Kind::Events(_)) => vec![value],
        _ => fold.items(value),
    };
    let rows = lists.into_iter().zip(0..).map(|(list, device)| (device, rows(fold, list)));
    rows.collect::<Vec<_>>().into_iter().filter(|(_, rows)| !rows.is_empty()).collect()
}

/// The rows of one list of entries.
fn rows(fold: &mut Fold, list: Value) -> Rows {
    if let Value::Node(id) = list
        && let Kind::Events(number) = fold.kind(id)
    {
        return fold.lists.get(number as usize).cloned().unwrap_or_default();
    }
    let mut rows = Rows::new();
    for item in fold.items(list) {
        match fold.look(item) {
            Value::Event(row) => rows.push((row, row + 1)),
            _ => fold.malformed += 1,
        }
    }
    rows
}

/// Gives each device its rows. They were read into one set of columns, in which those of a device mostly lie together:
/// then they are cut off from the end, so that no more than one device's are ever there twice.
fn by_device(fold: &mut Fold, lists: Vec<(i64, Rows)>) -> Checked<Vec<(i64, Events)>> {
    let mut all = std::mem::take(&mut fold.events);
    let is_in_order = lists.iter().all(|(_, rows)| rows.len() == 1)
        && lists.windows(2).all(|pair| match pair {
            [(_, a), (_, b)] => a.last().map(|a| a.1) <= b.first().map(|b| b.0),
            _ => true,
        });
    let mut devices = Vec::with_capacity(lists.len());
    if is_in_order {
        for (device, rows) in lists.into_iter().rev() {
            let Some(&(start, end)) = rows.first() else { continue };
            if (end as usize) < all.len() {
                all.split_off(end as usize);
            }
            devices.push((device, all.split_off(start as usize)));
        }
        return Ok(devices);
    }
    // An entry may be referred to more than once. No real file does so; one that multiplies itself is stopped.
    let total: u64 = lists.iter().flat_map(|(_, rows)| rows).map(|&(start, end)| u64::from(end - start)).sum();
    if total > 2 * all.len() as u64 {
        let text = format!("{} entries are listed {} times", Count(all.len() as u64), Count(total));
        return Err(super::error::too_much(text));
    }
    for (device, rows) in lists {
        let mut events = Events::default();
        for row in rows.into_iter().flat_map(|(start, end)| start..end) {
            if let Some(event) = all.get(row as usize) {
                events.push(event);
            }
        }
        devices.push((device, events));
    }
    Ok(devices)
}

fn read_annotations(fold: &mut Fold, value: Value) -> Vec<(i64, Annotation)> {
    let mut annotations = Vec::new();
    for value in fold.items(value) {
        let Some(pairs) = fold.dict(value) else {
            fold.malformed += 1;
            continue;
        };
        let mut device = 0;
        let mut annotation = Annotation { name: StrId(0), stage: Stage::Instant, time_us: 0 };
        for (key, value) in entries(&pairs) {
            match key {
                words::DEVICE => device = value.int().unwrap_or(0),
                words::NAME => annotation.name = fold.checked(value, value.str()),
                words::TIME_US => annotation.time_us = fold.checked(value, value.int()),
                words::STAGE => {
                    annotation.stage = match value.str() {
                        Some(words::START) => Stage::Start,
                        Some(words::END) => Stage::End,
                        _ => Stage::Instant,
                    };
                }
                _ => {}
            }
        }
        annotations.push((device, annotation));
    }
    annotations
}

/// Number of items of a list.
fn count(fold: &Fold, value: Value) -> u64 {
    let Value::Node(id) = value else { return 0 };
    match fold.kind(id) {
        Kind::List(place) => fold.kept.get(place).len() as u64,
        Kind::Events(number) => {
            let rows = fold.lists.get(number as usize).map_or(&[][..], Vec::as_slice);
            rows.iter().map(|&(start, end)| u64::from(end - start)).sum()
        }
        _ => 0,
    }
}
