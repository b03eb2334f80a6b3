//! The header chunk: where a recording comes from.

use codec::msgpack::{MapReader, MapWriter};
use query::run_profile::Conditions;
use trace::Settings;
use trace::error::{Checked, damaged};
use trace::limits::{HEADER_DEVICES, HEADER_FAULTS, HEADER_SETTINGS};

/// Where a recording comes from. All fields but the devices may be empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The program that wrote it, with its version: `vramscope 0.1.0`.
    pub program: String,
    /// The recording's name.
    pub name: String,
    /// The host name.
    pub host: String,
    /// The job's name.
    pub job: String,
    /// The process's rank within the job, if it has one.
    pub rank: Option<u32>,
    /// The number of the job's processes, if it is known: PyTorch's world size.
    pub ranks: Option<u32>,
    /// The number of the process on its host, if it is known.
    pub pid: Option<u32>,
    /// The PyTorch release that the allocator reproduces: `2.11`.
    pub torch: String,
    /// The allocator that was recorded, unless it is Vramscope's: `PyTorch's own`.
    pub allocator: String,
    /// The clock: `monotonic` (never set back; anchored to the epoch once, at the start), `system` or `simulated`.
    pub clock: String,
    /// When recording began, in microseconds since the epoch.
    pub started_us: i64,
    /// The recorded devices.
    pub devices: Vec<Device>,
    /// The allocator's settings.
    pub settings: Settings,
    /// What was wrong with the file that the recording is a copy of.
    pub faults: Vec<Fault>,
}

impl Header {
    /// Returns what it tells of the conditions of one of its devices, for a comparison with another run.
    pub fn conditions(&self, device: i64) -> Conditions {
        let known = self.devices.iter().find(|known| known.number == device);
        Conditions {
            torch: self.torch.clone(),
            card: known.map_or_else(String::new, |device| device.name.clone()),
            capacity: known.map_or(0, |device| device.capacity),
            rank: self.rank,
            ranks: self.ranks,
            ..Conditions::default()
        }
    }
}

/// Something that was wrong with a file that was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// Whether the end of the file was missing, or not read because of damage before it.
    pub is_cut: bool,
    /// One or two sentences about the file.
    pub message: String,
}

/// A recorded device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Its number.
    pub number: i64,
    /// Its model name.
    pub name: String,
    /// Its total memory in bytes; 0 if unknown.
    pub capacity: u64,
}

impl Header {
    /// Returns the payload of a header chunk.
    pub(super) fn encode(&self) -> Vec<u8> {
        let numbers = [("rank", self.rank), ("ranks", self.ranks), ("pid", self.pid)];
        let [rank, ranks, pid] = numbers.map(|(_, number)| number.is_some());
        let optional = [rank, ranks, pid, !self.allocator.is_empty(), !self.faults.is_empty()];
        let mut message = MapWriter::map(9 + optional.map(u32::from).iter().sum::<u32>());
        message.string("program", &self.program);
        message.string("name", &self.name);
        message.string("host", &self.host);
        message.string("job", &self.job);
        for (key, number) in numbers {
            if let Some(number) = number {
                message.unsigned(key, number.into());
            }
        }
        message.string("torch", &self.torch);
        if !self.allocator.is_empty() {
            message.string("allocator", &self.allocator);
        }
        message.string("clock", &self.clock);
        message.signed("started_us", self.started_us);
        message.key("devices").begin_array(self.devices.len());
        for device in &self.devices {
            message.begin_map(3);
            message.signed("number", device.number);
            message.string("name", &device.name);
            message.unsigned("capacity", device.capacity);
        }
        encode_settings(message.key("settings"), &self.settings);
        if !self.faults.is_empty() {
            message.key("faults").begin_array(self.faults.len());
            for fault in &self.faults {
                message.begin_map(2);
                message.flag("is_cut", fault.is_cut);
                message.string("message", &fault.message);
            }
        }
        message.into_bytes()
    }

    /// Reads the payload of a header chunk.
    pub fn decode(payload: &[u8]) -> Checked<Self> {
        let mut new = Self::default();
        MapReader::new(payload).map(&mut |key, values| {
            match key {
                "program" => new.program = values.string()?,
                "name" => new.name = values.string()?,
                "host" => new.host = values.string()?,
                "job" => new.job = values.string()?,
                "rank" => new.rank = Some(values.number()?),
                "ranks" => new.ranks = Some(values.number()?),
                "pid" => new.pid = Some(values.number()?),
                "torch" => new.torch = values.string()?,
                "allocator" => new.allocator = values.string()?,
                "clock" => new.clock = values.string()?,
                "started_us" => new.started_us = values.signed()?,
                "devices" => {
                    let count = values.array()?;
                    if count > HEADER_DEVICES {
                        return Err(damaged("it names too many devices"));
                    }
                    // A map may hold a key twice: the last value counts.
                    new.devices = (0..count).map(|_| decode_device(values)).collect::<Checked<_>>()?;
                }
                "settings" => new.settings = decode_settings(values)?,
                "faults" => {
                    let count = values.array()?;
                    if count > HEADER_FAULTS {
                        return Err(damaged("it names too many faults of the file that it is a copy of"));
                    }
                    new.faults = (0..count).map(|_| decode_fault(values)).collect::<Checked<_>>()?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(new)
    }

    /// Returns the bytes of memory that it occupies.
    pub fn bytes(&self) -> usize {
        let Self { program, name, host, job, torch, allocator, clock, devices, settings, faults, .. } = self;
        let texts = [program, name, host, job, torch, allocator, clock, &settings.conf];
        let names = devices.iter().map(|device| size_of::<Device>() + device.name.len());
        let pairs = settings.as_written.iter().map(|pair| size_of_val(pair) + pair.0.len() + pair.1.len());
        let faults = faults.iter().map(|fault| size_of::<Fault>() + fault.message.len());
        let lists = names.sum::<usize>() + pairs.sum::<usize>() + faults.sum::<usize>();
        size_of::<Self>() + texts.map(String::len).iter().sum::<usize>() + lists
    }
}

fn decode_fault(values: &mut MapReader<'_>) -> Checked<Fault> {
    let mut fault = Fault::default();
    values.map(&mut |key, values| {
        match key {
            "is_cut" => fault.is_cut = values.flag()?,
            "message" => fault.message = values.string()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(fault)
}

fn decode_device(values: &mut MapReader<'_>) -> Checked<Device> {
    let mut device = Device::default();
    values.map(&mut |key, values| {
        match key {
            "number" => device.number = values.signed()?,
            "name" => device.name = values.string()?,
            "capacity" => device.capacity = values.unsigned()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(device)
}

fn encode_settings(message: &mut MapWriter, settings: &Settings) {
    message.begin_map(5 + u32::from(settings.max_split_size.is_some()));
    message.string("conf", &settings.conf);
    if let Some(size) = settings.max_split_size {
        message.unsigned("max_split_size", size);
    }
    message.flag("expandable_segments", settings.expandable_segments);
    message.key("garbage_collection_threshold").float(settings.garbage_collection_threshold);
    message.key("roundup_power2_divisions").begin_array(settings.roundup_power2_divisions.len());
    for &divisions in &settings.roundup_power2_divisions {
        message.number(divisions);
    }
    message.key("as_written").begin_array(settings.as_written.len());
    for (name, value) in &settings.as_written {
        message.begin_array(2);
        message.text(name);
        message.text(value);
    }
}

fn decode_settings(values: &mut MapReader<'_>) -> Checked<Settings> {
    let mut settings = Settings::default();
    values.map(&mut |key, values| {
        match key {
            "conf" => settings.conf = values.string()?,
            "max_split_size" => settings.max_split_size = Some(values.unsigned()?),
            "expandable_segments" => settings.expandable_segments = values.flag()?,
            "garbage_collection_threshold" => settings.garbage_collection_threshold = values.float()?,
            "roundup_power2_divisions" => {
                let count = values.array()?;
                for i in 0..count {
                    let divisions = values.unsigned()?;
                    if let Some(slot) = settings.roundup_power2_divisions.get_mut(i as usize) {
                        *slot = divisions;
                    }
                }
            }
            "as_written" => {
                let count = values.array()?;
                if count > HEADER_SETTINGS {
                    return Err(damaged("it has too many settings"));
                }
                let setting = |_| {
                    if values.array()? != 2 {
                        return Err(damaged("a setting is not a pair of name and value"));
                    }
                    Ok((values.string()?, values.string()?))
                };
                settings.as_written = (0..count).map(setting).collect::<Checked<_>>()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_only_so_many_faults() {
        for (count, is_read) in [(HEADER_FAULTS, true), (HEADER_FAULTS + 1, false)] {
            let header = Header { faults: vec![Fault::default(); count as usize], ..Header::default() };
            assert_eq!(Header::decode(&header.encode()).is_ok(), is_read, "{count}");
        }
    }

    #[test]
    fn a_header_survives_a_round_trip() {
        let mut full = Header {
            program: "vramscope 0.1.0".to_owned(),
            name: "step".to_owned(),
            host: "node-7".to_owned(),
            job: "ablation".to_owned(),
            rank: Some(3),
            ranks: Some(8),
            pid: Some(4_194_304),
            torch: "2.11".to_owned(),
            allocator: "PyTorch's own".to_owned(),
            clock: "monotonic".to_owned(),
            started_us: -1,
            devices: vec![
                Device { number: 0, name: "NVIDIA H100 80GB HBM3".to_owned(), capacity: 80 << 30 },
                Device { number: 1, ..Device::default() },
            ],
            settings: Settings {
                conf: "max_split_size_mb:64".to_owned(),
                max_split_size: Some(64 << 20),
                expandable_segments: true,
                garbage_collection_threshold: 0.8,
                as_written: vec![("a".to_owned(), "b".to_owned())],
                ..Settings::default()
            },
            faults: vec![Fault { is_cut: true, message: "The file is truncated at byte 7.".to_owned() }],
        };
        full.settings.roundup_power2_divisions[15] = 8;
        for header in [full, Header::default()] {
            let bytes = header.encode();
            assert_eq!(Header::decode(&bytes).unwrap(), header);
            for cut in 0..bytes.len() {
                assert!(Header::decode(&bytes[..cut]).is_err());
            }
        }
    }
}
