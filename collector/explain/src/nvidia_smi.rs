//! The table of `nvidia-smi`: who holds the memory of which device.

use query::diagnosis::Cause;
use query::finding::Remedy;
use trace::units::{Bytes, counted_as};

use crate::explanation::{Explanation, Fact, TextKind};
use crate::size::at_start;

/// The most that a process which uses nothing of a device holds of it.
const CONTEXT: u64 = 2 << 30;
/// The most processes that are read.
const MOST: usize = 1_024;

/// A row of the table of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    device: u32,
    /// The part of a device that is divided (MIG).
    instance: Option<u32>,
    number: u32,
    name: String,
    /// None where the driver doesn't tell, as on Windows.
    bytes: Option<u64>,
}

/// Explains such a table: each device that it has. None if it is no such table.
pub(super) fn explain(text: &str) -> Vec<Explanation> {
    if !text.contains("NVIDIA-SMI") {
        return Vec::new();
    }
    let processes: Vec<Process> = text.lines().filter_map(process).take(MOST).collect();
    // Tables of parts of devices and of their address windows follow those of whole devices.
    let (whole, parts) = text.split_once("MIG devices").unwrap_or((text, ""));
    let mut device = 0;
    let mut found: Vec<Explanation> = Vec::new();
    for line in whole.lines() {
        if let Some(sums) = sums(line) {
            found.push(one((device, None), sums, &processes));
            device = device.saturating_add(1);
        } else if let Some(number) = numbers(line).first().filter(|_| line.contains(':')) {
            device = *number;
        }
    }
    let parts = parts.lines().filter_map(|line| match numbers(line).as_slice() {
        [device, instance, _, _] => Some(one((*device, Some(*instance)), sums(line)?, &processes)),
        _ => None,
    });
    found.extend(parts);
    found
}

fn one(place: (u32, Option<u32>), (used, total): (u64, u64), processes: &[Process]) -> Explanation {
    let (device, instance) = place;
    let is_here = |process: &&Process| process.device == device && (instance.is_none() || process.instance == instance);
    let named: Vec<&Process> = processes.iter().filter(is_here).collect();
    let mut own: Vec<(&Process, u64)> = named.iter().filter_map(|process| Some((*process, process.bytes?))).collect();
    own.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    // A small process that holds more elsewhere has its work there.
    let is_context = |(process, bytes): &(&Process, u64)| {
        let elsewhere = |other: &&Process| other.number == process.number && other.device != device;
        *bytes <= CONTEXT && processes.iter().filter(elsewhere).any(|other| other.bytes > Some(*bytes))
    };
    let contexts: Vec<u64> = own.iter().filter(|process| is_context(process)).map(|(_, bytes)| *bytes).collect();
    let largest = match (own.first(), named.len()) {
        (Some((process, bytes)), _) => {
            format!(" The largest process is {} ({}) with {}.", process.name, process.number, Bytes(*bytes))
        }
        (None, 0) if used < total / 100 => String::new(),
        (None, 0) => " No process is named: it is another user's, or in another container.".to_owned(),
        (None, count) => format!(
            " {} on it, and the driver doesn't tell what each holds, as on Windows.",
            counted_as(count as u64, "process is", "processes are")
        ),
    };
    let foreign = match contexts.as_slice() {
        [] => String::new(),
        contexts => format!(
            " {} only {} a context here, {} in all, and work on other devices.",
            counted_as(contexts.len() as u64, "process", "processes"),
            if contexts.len() == 1 { "has" } else { "have" },
            Bytes(contexts.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes)))
        ),
    };
    let remedies = match contexts.is_empty() {
        true => Vec::new(),
        false => vec![
            Remedy::advice(
                "Use one device a process: choose it before anything else uses CUDA, and load checkpoints with map_location=\"cpu\".",
            )
            .with_copy("torch.cuda.set_device(local_rank)"),
        ],
    };
    let named = own
        .iter()
        .take(8)
        .map(|(process, bytes)| Fact { name: format!("{} ({})", process.name, process.number).into(), bytes: *bytes });
    let sums = [
        Fact { name: "used of the device".into(), bytes: used },
        Fact { name: "on the device in all".into(), bytes: total },
    ];
    Explanation {
        kind: TextKind::NvidiaSmi,
        is_failure: false,
        device: Some(instance.map_or(format!("GPU {device}"), |part| format!("GPU {device}, MIG {part}"))),
        rank: None,
        cause: Cause::None,
        sentence: format!("{} of {} is used.{largest}{foreign}", Bytes(used), Bytes(total)),
        line: None,
        facts: named.chain(sums).collect(),
        remedies,
        next: "",
    }
}

/// Reads what is used of a device, and what it has: `|   41500MiB /  81920MiB |`.
fn sums(line: &str) -> Option<(u64, u64)> {
    let (head, total) = line.split_once("MiB /")?;
    let used = head.rsplit([' ', '|']).next()?;
    Some((at_start(&[used, "MiB"].concat())?, at_start(total)?))
}

/// Reads the numbers that a row's first cell begins with: `|   1  NVIDIA A100`, `|  1    3   0   0  |`.
fn numbers(line: &str) -> Vec<u32> {
    let cell = line.trim().strip_prefix('|').and_then(|row| row.split('|').next()).unwrap_or_default();
    cell.split_whitespace().map_while(|word| word.parse().ok()).collect()
}

/// Reads `|    0   N/A  N/A      4242      C   python      38912MiB |`.
fn process(line: &str) -> Option<Process> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut words: Vec<&str> = row.split_whitespace().collect();
    let last = words.pop()?;
    let bytes = at_start(last);
    if bytes.is_none() && last != "N/A" {
        return None;
    }
    let kind = words.iter().position(|word| matches!(*word, "C" | "G" | "C+G"))?;
    let (head, name) = words.split_at_checked(kind)?;
    let number = head.last()?.parse().ok()?;
    let instance = head.get(1).filter(|_| head.len() > 2).and_then(|instance| instance.parse().ok());
    Some(Process { device: head.first()?.parse().ok()?, instance, number, name: name.get(1..)?.join(" "), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   34C    P0             67W /  400W |   41500MiB /  81920MiB |      0%      Default |
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:0F:00.0 Off |                    0 |
| N/A   33C    P0             66W /  400W |   40000MiB /  81920MiB |      0%      Default |
| Processes:                                                                            |
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |
|    0   N/A  N/A      1001      C   /usr/bin/python3                          41000MiB |
|    0   N/A  N/A      1002      C   /usr/bin/python3                            500MiB |
|    1   N/A  N/A      1002      C   /usr/bin/python3                          40000MiB |";

    #[test]
    fn contexts_on_the_first_device_are_found() {
        let found = explain(TABLE);
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0].sentence,
            "40.5 GiB of 80.0 GiB is used. The largest process is /usr/bin/python3 (1001) with 40.0 GiB. 1 process only has a context here, \
             500 MiB in all, and work on other devices."
        );
        assert_eq!(found[0].remedies[0].copy, "torch.cuda.set_device(local_rank)");
        assert!(found[1].remedies.is_empty() && found[1].device.as_deref() == Some("GPU 1"));
        assert_eq!(explain("| 1 |"), []);
    }

    /// Parts of a device are no devices, and neither are their address windows.
    #[test]
    fn parts_of_devices_are_told_apart() {
        let table = "\
| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |
|   1  NVIDIA A100-SXM...  On   | 00000000:1F:00.0 Off |                   On |
| N/A   36C    P0    88W / 400W |  24205MiB / 81251MiB |     N/A      Default |
| MIG devices:                                                                |
|  1    3   0   0  |  14366MiB / 19968MiB | 28      0 |  2   0    1    0    0 |
|                  |      4MiB / 32767MiB |           |                       |
|  1    6   0   2  |     13MiB / 19968MiB | 28      0 |  2   0    1    0    0 |
|                  |      2MiB / 32767MiB |           |                       |
|    1    3    0      28141      C   python                          14353MiB |";
        let found = explain(table);
        let devices: Vec<_> = found.iter().filter_map(|found| found.device.as_deref()).collect();
        assert_eq!(devices, ["GPU 1", "GPU 1, MIG 3", "GPU 1, MIG 6"]);
        assert!(
            found[1].sentence.contains("The largest process is python (28141) with 14.0 GiB"),
            "{}",
            found[1].sentence
        );
        assert_eq!(found[2].sentence, "13.0 MiB of 19.5 GiB is used.");
    }

    #[test]
    fn processes_without_figures_are_named_as_such() {
        let table = "\
| NVIDIA-SMI 536.99                 Driver Version: 536.99       CUDA Version: 12.2     |
|   0  NVIDIA GeForce GTX 1070      WDDM  | 00000000:02:00.0  On |                  N/A |
| 20%   48C    P8              11W / 180W |    775MiB /  8192MiB |      1%      Default |
|    0   N/A  N/A      1234    C+G   ...Programs\\a\\a.exe                         N/A      |
|    0   N/A  N/A      4321      C   ...envs\\b\\python.exe                        N/A      |";
        let found = explain(table);
        assert!(
            found[0].sentence.contains("2 processes are on it, and the driver doesn't tell"),
            "{}",
            found[0].sentence
        );
        assert_eq!(found[0].facts.len(), 2);
    }
}
