//! Measures the speed and the memory of imports.
//!
//! `cargo bench -p session --bench import -- FILE...` prints a line for each file, pushed as it is read, 1 MiB at a
//! time. The peak is that of the whole process: to measure a file's own peak, give only that file.

use std::io::Read;
use std::time::Instant;

use format::import::Importer;
use trace::limits::ImportLimits;

fn main() {
    // `cargo bench` adds an argument of its own.
    let files: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if files.is_empty() {
        println!("usage: cargo bench -p session --bench import -- FILE...");
        return;
    }
    println!(
        "{:>10} {:>8} {:>9} {:>12} {:>10} {:>8}  file",
        "bytes", "seconds", "MB/s", "entries", "peak KiB", "of file"
    );
    for file in files {
        match measure(&file) {
            Ok(line) => println!("{line}  {file}"),
            Err(error) => println!("{file}: {error}"),
        }
    }
}

fn measure(path: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut file = std::fs::File::open(path)?;
    let mut piece = vec![0; 1 << 20];
    let mut importer = Importer::new(ImportLimits::default());
    let mut bytes = 0;
    let start = Instant::now();
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        importer.push(&piece[..count])?;
        bytes += count;
    }
    let imported = importer.finish()?;
    let seconds = start.elapsed().as_secs_f64();
    let entries: usize = imported.snapshot.devices.iter().map(|device| device.events.len()).sum();
    let peak = peak_kib().unwrap_or(0);
    let share = peak as f64 * 1024.0 / bytes as f64;
    let speed = bytes as f64 / 1e6 / seconds;
    Ok(format!("{bytes:>10} {seconds:>8.3} {speed:>9.1} {entries:>12} {peak:>10} {share:>8.2}"))
}

/// Returns the peak memory of this process, as Linux reports it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
