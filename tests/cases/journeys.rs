//! The page in a real browser, and what its modules weigh.

use anyhow::{Context, Result};
use tests::browser::run_journeys;
use tests::http;
use tests::server::Server;

/// Each WebAssembly module with its JavaScript glue, and the bytes of Brotli that it stays below. The page has a tab for
/// heatmaps, curves, range selection, the verdict card, comparisons of steps, the dialogs of rules, sharing and uploads, and
/// what opens links, URLs and messages, above the 350,000 bytes that it began with. The what-if tab added 25,000 to its
/// 500,000: the table of runs, the form, the chart, the cards and the search, each with its words. Sweeps added 6,000 to that:
/// the plot, the table and the line to paste, whose texts come ready from the engine; runs that are drawn over other views and
/// open as files, and verdicts that are checked, 5,000 more, with 4,000 to spare. The engine makes copies of traces with
/// their previews and hashes files, above its first 600,000, and reads from a trace what the program requested, with the pools
/// and releases that follow from it, above 670,000. The reader of sweeps, written by hand for it, and their texts added 10,000
/// to its 680,000, and recordings of runs 6,000, with 4,000 to spare. What-if is loaded when its tab is first used; most of it is the allocator.
const BUDGETS: [(&str, usize); 3] = [("page", 540_000), ("engine", 700_000), ("whatif", 180_000)];

#[test]
#[ignore = "needs Chromium and a program with the page: tests/run has both"]
fn journeys() -> Result<()> {
    let server = Server::start()?;
    run_journeys(&server.url())
}

#[test]
#[ignore = "needs a program with the page: tests/run has it"]
fn all_modules_stay_within_their_budgets() -> Result<()> {
    let server = Server::start()?;
    // The scripts that name the modules, and those that name the scripts.
    let mut text = server.get("/")?.text();
    for script in ["boot-", "worker-", "rerun-"] {
        text += &server.get(&address(&text, script)?)?.text();
    }
    for (name, budget) in BUDGETS {
        let mut size = 0;
        for file in [format!("{name}_bg-"), format!("{name}-")] {
            let file = http::get(server.address(), &address(&text, &file)?, &[("Accept-Encoding", "br")])?;
            assert_eq!((file.status, file.header("content-encoding")), (200, "br"), "{name}");
            size += file.body.len();
        }
        println!("{name}: {size} bytes of {budget} in Brotli");
        assert!(size <= budget, "{name} has {size} bytes in Brotli, and its budget is {budget}");
    }
    Ok(())
}

/// Returns the address of the file that `text` names in quotes, by the beginning of the name.
fn address(text: &str, start: &str) -> Result<String> {
    let names = text.split('"').map(|part| part.trim_start_matches("./"));
    let name =
        names.into_iter().find(|name| name.starts_with(start)).with_context(|| format!("nothing names {start}"))?;
    Ok(format!("/{name}"))
}
