//! The kernel's log of an NVIDIA driver: `NVRM: Xid (PCI:0000:07:00): 79, GPU has fallen off the bus.`

use query::diagnosis::Cause;
use query::finding::Remedy;

use crate::explanation::{Explanation, TextKind};

/// What the numbers mean, by the catalog of NVIDIA's "Xid Errors" in its GPU deployment documentation.
const NUMBERS: &[(&[u32], &str, &str)] = &[
    (&[13], "A kernel accessed memory that it must not: a bug of the program, not a lack of memory.", ILLEGAL),
    (&[31], "A kernel accessed memory that was not mapped: a bug of the program, not a lack of memory.", ILLEGAL),
    (&[43], "The program's work on the GPU was stopped by a fault of the program; the device is well.", ILLEGAL),
    (
        &[45],
        "The driver ended the program's work on the GPU, mostly since the program was killed or another error came before.",
        LOOK,
    ),
    (&[48], "The device's memory had an error that can't be corrected (double-bit ECC).", BROKEN),
    (&[63], "A part of the device's memory was replaced by a spare one.", RESET),
    (&[64], "A part of the device's memory is broken, and could not be replaced.", BROKEN),
    (&[74, 144, 145, 146, 147, 148, 149, 150], "A link between devices (NVLink) failed.", BROKEN),
    (&[79], "The device can't be reached any more: it fell off the bus.", BROKEN),
    (&[94], "The device's memory had an error that only this program saw (contained ECC).", RESET),
    (&[95], "The device's memory had an error that any program may have seen (uncontained ECC).", BROKEN),
    (&[109], "Switching to the program's work on the GPU took too long (context switch timeout).", RESET),
    (&[119, 120], "The processor of the device itself (GSP) gave the driver no answer, or a wrong one.", RESET),
    (&[154], "The driver says what brings the device back: the end of the line names it.", RECOVER),
];

const ILLEGAL: &str = "Find the kernel: run with CUDA_LAUNCH_BLOCKING=1, or under compute-sanitizer.";
const LOOK: &str = "Look for the error before it: in this log, and in the program's own.";
const RESET: &str = "Start the program again; reset the device when nothing uses it.";
const RECOVER: &str = "Do what the line names, and look for the error before it.";
const BROKEN: &str = "Reset the device, and use another one if it comes again: it may be broken.";

/// Explains the last such line; `None` if there is none.
pub(super) fn explain(text: &str) -> Option<Explanation> {
    let (_, rest) = text.rsplit_once("NVRM: Xid (")?;
    let (bus, rest) = rest.split_once("):")?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    let number: u32 = digits.parse().ok()?;
    let known = NUMBERS.iter().find(|(known, ..)| known.contains(&number));
    let (sentence, advice) = known.map_or(
        ("The driver reported an error of the device or of the program, and no lack of memory.", LOOK),
        |(_, sentence, advice)| (*sentence, *advice),
    );
    Some(Explanation {
        kind: TextKind::DriverLog,
        is_failure: true,
        device: Some(bus.to_owned()),
        rank: None,
        cause: Cause::None,
        sentence: format!("Xid {number}: {sentence}"),
        line: None,
        facts: Vec::new(),
        remedies: vec![Remedy::advice(advice)],
        next: "",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_told() {
        let log =
            "[ 1.0] NVRM: Xid (PCI:0000:07:00): 31, pid=7\n[ 2.0] NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>'";
        let found = explain(log).expect("an answer");
        assert!(found.sentence.starts_with("Xid 79: The device can't be reached"), "{}", found.sentence);
        assert_eq!(found.device.as_deref(), Some("PCI:0000:07:00"));
        assert!(explain("NVRM: Xid (PCI:0): 777, x").is_some_and(|found| found.sentence.contains("no lack of memory")));
        assert_eq!(explain("NVRM: Xid (PCI:0): x"), None);
    }
}
