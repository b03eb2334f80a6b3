//! The configuration of a recording: the JSON text of `vramscope_start`.

use std::path::PathBuf;

use format::{Device, Header};
use serde::Deserialize;
use trace::Settings;
use trace::limits::RecorderLimits;

/// The configuration. Only `devices` and one of `out` and `to` are required.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The file to write.
    pub out: Option<String>,
    /// The server to send to.
    pub to: Option<String>,
    /// The server's access token.
    pub token: Option<String>,
    /// A file with the certificates to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The recording's name.
    pub name: String,
    /// The job that the process belongs to.
    pub job: String,
    /// The machine's name.
    pub host: String,
    /// The process's rank in the job.
    pub rank: Option<u32>,
    /// The number of the job's processes.
    pub ranks: Option<u32>,
    /// The process's number.
    pub pid: Option<u32>,
    /// How events are captured, as shown to people: `every event`, `within a budget of 1 %`.
    pub mode: String,
    /// The release of PyTorch.
    pub torch: String,
    /// The allocator's name; empty for this library's allocator.
    pub allocator: String,
    /// Whether events keep stacks.
    pub stacks: bool,
    /// The devices to record.
    pub devices: Vec<DeviceConfig>,
    /// The allocator's settings.
    pub settings: SettingsConfig,
    /// The most events of one device that wait for the writer.
    pub queue_events: Option<usize>,
    /// Milliseconds between two writes.
    pub flush_millis: Option<u64>,
}

/// A device.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceConfig {
    /// Its number.
    pub number: i64,
    /// Its model.
    pub name: String,
    /// Its memory in bytes.
    pub capacity: u64,
}

/// The allocator's settings, as in a snapshot.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsConfig {
    /// The settings string.
    pub conf: String,
    /// Bytes; unlimited if missing or negative.
    pub max_split_size: Option<i64>,
    /// `expandable_segments`.
    pub expandable_segments: bool,
    /// `garbage_collection_threshold`.
    pub garbage_collection_threshold: f64,
    /// `roundup_power2_divisions`, from the smallest size on.
    pub roundup_power2_divisions: Vec<u64>,
    /// Every setting's name and value.
    pub as_written: Vec<(String, String)>,
}

/// Milliseconds between two writes. If the job is killed, the events since the last one are lost. A write of each of many
/// ranks is a batch that their server has to store.
const FLUSH_MILLIS: u64 = 100;

/// The most events that a queue may hold: 3.5 GiB at 56 bytes each.
const QUEUE_EVENTS: usize = 1 << 26;

impl Config {
    /// Parses and checks the text. The error is one line to show to a person.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config = Self::parse_part(text)?;
        if config.devices.is_empty() {
            return Err("Nothing to record: the configuration names no device.".to_owned());
        }
        if config.out.is_none() && config.to.is_none() {
            return Err("No destination: set `out` to a file, or `to` to a server's address.".to_owned());
        }
        Ok(config)
    }

    /// Parses the text without checking that it is complete. The devices, for example, may be added later.
    pub fn parse_part(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("The configuration is malformed: {error}."))
    }

    /// Returns the recording's header.
    pub fn header(&self) -> Header {
        let device = |device: &DeviceConfig| Device {
            number: device.number,
            name: device.name.clone(),
            capacity: device.capacity,
        };
        Header {
            program: format!("vramscope {}", env!("CARGO_PKG_VERSION")),
            name: self.name.clone(),
            host: self.host.clone(),
            job: self.job.clone(),
            rank: self.rank,
            ranks: self.ranks,
            pid: self.pid,
            torch: self.torch.clone(),
            allocator: self.allocator.clone(),
            devices: self.devices.iter().map(device).collect(),
            settings: self.settings.settings(),
            ..Header::default()
        }
    }

    /// Returns the recorder's bounds.
    pub fn limits(&self) -> RecorderLimits {
        let mut limits = RecorderLimits { flush_millis: FLUSH_MILLIS, ..RecorderLimits::default() };
        if let Some(events) = self.queue_events {
            limits.queue_events = events.clamp(16, QUEUE_EVENTS);
        }
        if let Some(millis) = self.flush_millis {
            limits.flush_millis = millis;
        }
        limits
    }
}

impl From<&Settings> for SettingsConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            conf: settings.conf.clone(),
            max_split_size: settings.max_split_size.and_then(|size| i64::try_from(size).ok()),
            expandable_segments: settings.expandable_segments,
            garbage_collection_threshold: settings.garbage_collection_threshold,
            roundup_power2_divisions: settings.roundup_power2_divisions.to_vec(),
            as_written: settings.as_written.clone(),
        }
    }
}

impl SettingsConfig {
    fn settings(&self) -> Settings {
        let mut settings = Settings {
            conf: self.conf.clone(),
            max_split_size: self.max_split_size.and_then(|size| u64::try_from(size).ok()),
            expandable_segments: self.expandable_segments,
            garbage_collection_threshold: self.garbage_collection_threshold,
            as_written: self.as_written.clone(),
            ..Settings::default()
        };
        for (to, &from) in settings.roundup_power2_divisions.iter_mut().zip(&self.roundup_power2_divisions) {
            *to = from;
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_what_is_missing() {
        let device = r#""devices": [{"number": 1, "name": "H100", "capacity": 85899345920}]"#;
        // Text; a part of its error.
        let cases = [
            ("", "malformed"),
            (r#"{"out": "a.vramscope"}"#, "no device"),
            (&format!("{{{device}}}"), "No destination"),
            (&format!(r#"{{{device}, "out": "a", "outt": 1}}"#), "outt"),
        ];
        for (text, want) in cases {
            let error = Config::parse(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
        let config =
            Config::parse(&format!(r#"{{{device}, "out": "a", "settings": {{"max_split_size": -1}}}}"#)).unwrap();
        let header = config.header();
        assert_eq!((header.devices[0].number, header.devices[0].capacity), (1, 80 << 30));
        assert_eq!(header.settings.max_split_size, None);
    }
}
