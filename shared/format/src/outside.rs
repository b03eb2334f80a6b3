//! The chunk with samples of the memory beside a device's allocator.

use super::varint::{Varints, push, zigzag};
use codec::msgpack::{MapReader, MapWriter};
use trace::OutsideSample;
use trace::error::{Checked, damaged};
use trace::limits::CHUNK_OUTSIDE_SAMPLES;
use trace::narrow::number32;

/// The contents of an outside chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutsideChunk {
    /// The device.
    pub device: i64,
    /// Its samples, in the order in which they were taken.
    pub samples: Vec<OutsideSample>,
}

/// Returns a column of the differences between numbers.
fn differences(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    let (mut column, mut last) = (Vec::new(), 0_u64);
    for number in numbers {
        push(&mut column, zigzag(number.wrapping_sub(last) as i64));
        last = number;
    }
    column
}

/// Returns the payload of an outside chunk. Samples keep their order.
pub(super) fn encode_outside(device: i64, samples: &[OutsideSample]) -> Vec<u8> {
    let mut columns = vec![("time", differences(samples.iter().map(|sample| sample.time_us as u64)))];
    for (i, name) in OutsideSample::NAMES.into_iter().enumerate() {
        let values = || samples.iter().filter_map(|sample| sample.values().get(i).copied());
        if values().any(|value| value.is_some()) {
            // 0 is unknown, so a known number is written one higher. The largest number of all is written as the one below.
            columns.push((name, differences(values().map(|value| value.map_or(0, |value| value.saturating_add(1))))));
        }
    }
    let mut message = MapWriter::map(number32(columns.len() + 1));
    message.signed("device", device);
    for (name, column) in &columns {
        message.column(name, column);
    }
    message.into_bytes()
}

impl OutsideChunk {
    /// Reads the payload of an outside chunk.
    pub fn decode(payload: &[u8]) -> Checked<Self> {
        let (mut device, mut time) = (0, Vec::new());
        let mut columns: [Vec<u64>; OutsideSample::NAMES.len()] = Default::default();
        MapReader::new(payload).map(&mut |key, values| {
            match key {
                "device" => device = values.signed()?,
                "time" => time = numbers(values.column()?)?,
                _ => {
                    let Some(i) = OutsideSample::NAMES.iter().position(|name| *name == key) else { return Ok(false) };
                    if let Some(column) = columns.get_mut(i) {
                        *column = numbers(values.column()?)?;
                    }
                }
            }
            Ok(true)
        })?;
        if columns.iter().any(|column| !column.is_empty() && column.len() != time.len()) {
            return Err(damaged("a column of an outside chunk has another length than its times"));
        }
        let samples = time.iter().enumerate().map(|(i, time_us)| {
            let value = |column: &Vec<u64>| column.get(i).and_then(|value| value.checked_sub(1));
            OutsideSample::new(*time_us as i64, columns.each_ref().map(value))
        });
        Ok(Self { device, samples: samples.collect() })
    }
}

/// Returns the numbers of a column of differences.
fn numbers(column: &[u8]) -> Checked<Vec<u64>> {
    let (mut column, mut numbers, mut last) = (Varints::new(column), Vec::new(), 0_u64);
    while !column.is_empty() {
        if numbers.len() == CHUNK_OUTSIDE_SAMPLES {
            return Err(damaged("an outside chunk has too many samples"));
        }
        last = last.wrapping_add(column.signed()? as u64);
        numbers.push(last);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_of_wrong_lengths_are_damage() {
        let mut message = MapWriter::map(2);
        message.column("time", &[2, 2]);
        message.column("pinned", &[2]);
        assert!(OutsideChunk::decode(&message.into_bytes()).is_err());
        // A byte of the file may cost no more than its sample.
        let mut message = MapWriter::map(1);
        message.column("time", &[2; CHUNK_OUTSIDE_SAMPLES + 1]);
        assert!(OutsideChunk::decode(&message.into_bytes()).is_err());
        let empty = OutsideChunk { device: 3, samples: Vec::new() };
        assert_eq!(OutsideChunk::decode(&encode_outside(3, &[])).unwrap(), empty);
    }

    proptest! {
        #[test]
        fn samples_survive_a_round_trip(
            device: i64,
            values in prop::collection::vec((any::<i64>(), prop::array::uniform4(prop::option::of(0..u64::MAX))), 0..40),
            keys in prop::array::uniform4(any::<bool>()),
        ) {
            let samples: Vec<OutsideSample> = values
                .into_iter()
                .map(|(time_us, mut values)| {
                    // Quantities that are unknown throughout have no column.
                    values.iter_mut().zip(keys).filter(|(_, is_known)| !is_known).for_each(|(value, _)| *value = None);
                    OutsideSample::new(time_us, values)
                })
                .collect();
            let bytes = encode_outside(device, &samples);
            prop_assert_eq!(OutsideChunk::decode(&bytes).unwrap(), OutsideChunk { device, samples });
            for end in 0..bytes.len() {
                let _ = OutsideChunk::decode(&bytes[..end]);
            }
        }
    }
}
