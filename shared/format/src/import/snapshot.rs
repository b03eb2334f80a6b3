//! From the values of a whole file to a snapshot: the layouts of torch 1.13 to 2.15.
//!
//! Everything but `segments` or `device_traces` is optional, and unknown keys are ignored. A truncated file is read the
//! same way, from the values that are complete; so is one that is damaged, up to the damage.

use super::findings::{self, Notes};
use super::settings;
use crate::values::keywords;
use crate::values::{Kind, Value};
use crate::values::{Rows, SnapshotBuilder, entries, has_key};
use query::finding::Finding;
use trace::error::{Checked, ImportError};
use trace::frames::{StackId, StrId};
use trace::numbered::Numbered;
use trace::order::SortFew;
use trace::units::{Count, counted_as};
use trace::{Annotation, DeviceTrace, Events, Segment, Snapshot, Stage};

/// Why the end of a snapshot was not read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop<'a> {
    /// The (decompressed) file ends at this byte.
    Cut(u64),
    /// It is damaged.
    Damage(&'a ImportError),
}

/// The result of a reader.
pub(super) struct Read<'a> {
    pub(super) builder: SnapshotBuilder,
    pub(super) root: Option<Value>,
    pub(super) stop: Option<Stop<'a>>,
    pub(super) is_packed: bool,
}

/// Returns the snapshot and the findings about it.
pub(super) fn assemble(read: Read<'_>) -> Result<(Snapshot, Vec<Finding>), ImportError> {
    let Read { mut builder, root, stop, is_packed } = read;
    let mut notes = Notes { stop, is_packed, ..Notes::default() };
    let pairs = top(&mut builder, root, stop.is_some())?;
    let end = if let Some(Stop::Cut(byte)) = stop { byte } else { 0 };
    let snapshot = read_top(builder, &pairs, &mut notes).map_err(|fault| fault.at("snapshot", end))?;
    let is_empty = snapshot.devices.is_empty() && snapshot.host.segments.is_empty() && snapshot.host.events.is_empty();
    if is_empty && notes.misfits > 0 {
        return Err(ImportError::NotASnapshot("its segments or device_traces are those of another kind of file"));
    }
    let findings = findings::findings(&snapshot, &notes);
    Ok((snapshot, findings))
}

/// Returns the top-level entries; a plain list holds the segments (torch 1.13, and `torch.cuda.memory_snapshot()`).
fn top(builder: &mut SnapshotBuilder, root: Option<Value>, is_cut: bool) -> Result<Vec<Value>, ImportError> {
    let refused = ImportError::NotASnapshot(match is_cut {
        true => "it is truncated before any part of it is complete",
        false => "it holds neither segments nor device_traces",
    });
    let Some(root) = root else { return Err(refused) };
    if let Some(pairs) = builder.dict(root) {
        let known = has_key(&pairs, keywords::SEGMENTS) || has_key(&pairs, keywords::DEVICE_TRACES);
        return if known { Ok(pairs) } else { Err(refused) };
    }
    let first = match root {
        Value::Stack(StackId(0)) => None,
        Value::Node(id) => match builder.kind(id) {
            Kind::EmptyList => None,
            Kind::List(place) => builder.kept.get(place).first().copied(),
            _ => return Err(refused),
        },
        _ => return Err(refused),
    };
    // torch 1.13 writes an empty list before the first allocation; a truncated one means nothing.
    let known = first.map_or(!is_cut, |segment| has_key(builder.dict_entries(segment), keywords::TOTAL_SIZE));
    if known { Ok(vec![Value::Str(keywords::SEGMENTS), root]) } else { Err(refused) }
}

fn read_top(mut builder: SnapshotBuilder, pairs: &[Value], notes: &mut Notes<'_>) -> Checked<Snapshot> {
    let mut devices: Numbered<DeviceTrace> = Numbered::default();
    let mut lists: Vec<(Option<i64>, Rows)> = Vec::new();
    let mut annotations = Vec::new();
    let mut snapshot = Snapshot::default();
    for (key, value) in entries(pairs) {
        let before = builder.malformed;
        match key {
            keywords::SEGMENTS => read_segments(&mut builder, value, &mut |device, segment| {
                devices.entry(device).segments.push(segment);
            })?,
            keywords::DEVICE_TRACES => lists.extend(traces(&mut builder, value)),
            keywords::ALLOCATOR_SETTINGS => snapshot.settings = settings::settings(&mut builder, value),
            keywords::EXTERNAL_ANNOTATIONS => annotations = read_annotations(&mut builder, value),
            keywords::HOST_SEGMENTS => {
                read_segments(&mut builder, value, &mut |_, segment| snapshot.host.segments.push(segment))?;
            }
            keywords::HOST_TRACES => lists.push((None, rows(&mut builder, value))),
            _ => {}
        }
        if matches!(key, keywords::SEGMENTS | keywords::DEVICE_TRACES) {
            notes.misfits += builder.malformed - before;
        }
        snapshot.marks.annotations |= key == keywords::EXTERNAL_ANNOTATIONS;
        snapshot.marks.host |= key == keywords::HOST_SEGMENTS;
        notes.last_key = Some(key);
    }
    lists.retain(|(_, rows)| !rows.is_empty());
    for (device, events) in distributed(&mut builder, lists)? {
        match device {
            Some(device) => devices.entry(device).events = events,
            None => snapshot.host.events = events,
        }
    }
    snapshot.host.segments.sort_few_by_key(|segment| segment.address);
    for (device, annotation) in annotations {
        match devices.get_mut(device) {
            Some(trace) => trace.annotations.push(annotation),
            None => notes.homeless_annotations += 1,
        }
    }
    snapshot.marks.add(builder.marks);
    notes.malformed = builder.malformed;
    snapshot.devices = devices
        .take_sorted()
        .into_iter()
        .map(|(device, mut trace)| {
            trace.device = device;
            trace.segments.sort_few_by_key(|segment| segment.address);
            trace
        })
        .collect();
    snapshot.symbols = builder.symbols;
    snapshot.tags = builder.tags;
    Ok(snapshot)
}

fn read_segments(builder: &mut SnapshotBuilder, value: Value, add: &mut dyn FnMut(i64, Segment)) -> Checked {
    for value in builder.items(value) {
        match super::segments::segment(builder, value)? {
            Some((device, segment)) => add(device, segment),
            None => builder.malformed += 1,
        }
    }
    Ok(())
}

/// Returns the rows of each device, by its place in the list.
fn traces(builder: &mut SnapshotBuilder, value: Value) -> Vec<(Option<i64>, Rows)> {
    let lists = match value {
        // A list of entries in place of a list of such lists: one device.
        Value::Node(id) if matches!(builder.kind(id), Kind::Events(_)) => vec![value],
        _ => builder.items(value),
    };
    lists.into_iter().zip(0..).map(|(list, device)| (Some(device), rows(builder, list))).collect()
}

/// Returns the rows of one list of entries.
fn rows(builder: &mut SnapshotBuilder, list: Value) -> Rows {
    if let Value::Node(id) = list
        && let Kind::Events(number) = builder.kind(id)
    {
        return builder.lists.get(number as usize).cloned().unwrap_or_default();
    }
    let mut rows = Rows::new();
    for item in builder.items(list) {
        match builder.look(item) {
            Value::Event(row) => rows.push((row, row + 1)),
            _ => builder.malformed += 1,
        }
    }
    rows
}

/// Distributes the rows to the devices, and to the host (`None`). All were read into one set of columns, where those of
/// one list are mostly contiguous: then they are split off from the end, so that at most one list's rows are ever copied.
fn distributed(builder: &mut SnapshotBuilder, lists: Vec<(Option<i64>, Rows)>) -> Checked<Vec<(Option<i64>, Events)>> {
    let mut all = std::mem::take(&mut builder.events);
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
    // Entries may be referenced repeatedly. No real file does that, and one that multiplies its size is refused.
    let total: u64 = lists.iter().flat_map(|(_, rows)| rows).map(|&(start, end)| u64::from(end - start)).sum();
    if total > 2 * all.len() as u64 {
        let text =
            format!("it lists {} {} times", counted_as(all.len() as u64, "trace entry", "trace entries"), Count(total));
        return Err(trace::error::too_much(text));
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

fn read_annotations(builder: &mut SnapshotBuilder, value: Value) -> Vec<(i64, Annotation)> {
    let mut annotations = Vec::new();
    for value in builder.items(value) {
        let Some(pairs) = builder.dict(value) else {
            builder.malformed += 1;
            continue;
        };
        let mut device = 0;
        let mut annotation = Annotation { name: StrId(0), stage: Stage::Instant, time_us: 0 };
        for (key, value) in entries(&pairs) {
            match key {
                keywords::DEVICE => device = value.int().unwrap_or(0),
                keywords::NAME => annotation.name = builder.checked(value, value.str()),
                keywords::TIME_US => annotation.time_us = builder.checked(value, value.int()),
                keywords::STAGE => {
                    annotation.stage = match value.str() {
                        Some(keywords::START) => Stage::Start,
                        Some(keywords::END) => Stage::End,
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
