//! The table of `nvidia-smi`: who holds the memory of which device.

use query::diagnosis::Cause;
use query::finding::Remedy;
use trace::units::{Bytes, counted};

use super::explanation::{Explanation, Fact, TextKind};
use super::size::at_start;

/// The most that a process which uses nothing of a device holds of it.
const CONTEXT: u64 = 2 << 30;
/// The most processes that are read.
const MOST: usize = 1_024;

/// A row of the table of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    device: u32,
    number: u32,
    name: String,
    bytes: u64,
}

/// Explains such a table: each device that it has. None if it is no such table.
pub(super) fn explain(text: &str) -> Vec<Explanation> {
    if !text.contains("NVIDIA-SMI") {
        return Vec::new();
    }
    let processes: Vec<Process> = text.lines().filter_map(process).take(MOST).collect();
    let sums = text.lines().filter_map(sums);
    let devices = sums.zip(0_u32..).map(|((used, total), device)| one(device, (used, total), &processes));
    devices.collect()
}

fn one(device: u32, (used, total): (u64, u64), processes: &[Process]) -> Explanation {
    let mut own: Vec<&Process> = processes.iter().filter(|process| process.device == device).collect();
    own.sort_by_key(|process| std::cmp::Reverse(process.bytes));
    // A small process that holds more elsewhere has its work there.
    let is_context = |process: &Process| {
        let elsewhere = |other: &&Process| other.number == process.number && other.device != device;
        process.bytes <= CONTEXT && processes.iter().filter(elsewhere).any(|other| other.bytes > process.bytes)
    };
    let contexts: Vec<&&Process> = own.iter().filter(|process| is_context(process)).collect();
    let largest = own.first().map_or_else(
        || " No process is named: it is another user's, or in another container.".to_owned(),
        |process| {
            format!(" The largest process is {} ({}) with {}.", process.name, process.number, Bytes(process.bytes))
        },
    );
    let foreign = match contexts.as_slice() {
        [] => String::new(),
        contexts => format!(
            " {} only {} a context here, {} in all, and work on other devices.",
            counted(contexts.len() as u64, "process"),
            if contexts.len() == 1 { "has" } else { "have" },
            Bytes(contexts.iter().fold(0_u64, |sum, process| sum.saturating_add(process.bytes)))
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
        .map(|process| Fact { name: format!("{} ({})", process.name, process.number).into(), bytes: process.bytes });
    let sums = [
        Fact { name: "used of the device".into(), bytes: used },
        Fact { name: "on the device in all".into(), bytes: total },
    ];
    Explanation {
        kind: TextKind::NvidiaSmi,
        is_failure: false,
        device: Some(format!("GPU {device}")),
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

/// Reads `|    0   N/A  N/A      4242      C   python      38912MiB |`.
fn process(line: &str) -> Option<Process> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut words: Vec<&str> = row.split_whitespace().collect();
    let bytes = at_start(words.pop()?)?;
    let kind = words.iter().position(|word| matches!(*word, "C" | "G" | "C+G"))?;
    let (head, name) = words.split_at_checked(kind)?;
    let number = head.last()?.parse().ok()?;
    Some(Process { device: head.first()?.parse().ok()?, number, name: name.get(1..)?.join(" "), bytes })
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
}
