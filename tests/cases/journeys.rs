//! The page in a real browser, and what its modules weigh.

use anyhow::{Context, Result};
use tests::browser::run_journeys;
use tests::http;
use tests::server::Server;

/// Each WebAssembly module with its JavaScript glue, and the bytes of Brotli that it stays below, as it is sent.
///
/// - The page began with 350,000 for timeline, segments, flame graph and events. Heatmap, curves, ranges, verdicts, comparisons
///   of steps, rules, sharing and uploads brought it to 500,000; what-if and sweeps to 540,000. History, files opened lately,
///   the search's list, two views at once, pins, menus, gestures, transforms of the flame graph, the sheet of small windows and
///   the texts for screen readers added 90,000. Recent files in menus, searches of several words, low windows, labels that
///   find their places and rows that tell jobs apart added 26,000. Then it lost 66,000 without losing anything else: errors after
///   each field that is read, code for each effect, numbers and tables of the standard library, names of imports. Texts of errors that
///   are explained added 2,000.
/// - The engine began with 600,000. Copies with previews, hashes, requests and pools, sweeps and recordings of runs brought it to
///   700,000; transforms, sandwich and difference of flame graphs, orders of segments and events, lists of what a search finds
///   and the states of files that are cut off added 45,000; rules about steps and about what pins segments 14,000.
///   It lost 27,000 as the page did; small leaks and what a whole device reserves added 5,000, profiles of runs and their comparison
///   20,000, the stacks of two runs in one flame graph 6,000.
/// - What-if is loaded when its tab is first used; most of it is the allocator.
/// - The page as users install it is in two modules since it was 565,000: the first draws the start page and the timeline of a
///   trace, and the second, `later`, everything else. It needs no glue. The details went there, 38,000, and the comparison of two runs
///   added 30,000. Nobody waits for it: at 10 Mbit/s, 312,000 bytes come in a quarter of a second.
const BUDGETS: [(&str, usize); 4] = [("page", 356_500), ("later", 276_500), ("engine", 624_000), ("whatif", 152_000)];

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
        text += &server.get(&address(&text, script, ".js")?)?.text();
    }
    let mut over = Vec::new();
    for (name, budget) in BUDGETS {
        let mut size = 0;
        // The stylesheet of the page begins as its glue does.
        let glue = (name != "later").then(|| (format!("{name}-"), ".js"));
        for (file, end) in [(format!("{name}_bg-"), ".wasm")].into_iter().chain(glue) {
            let file = http::get(server.address(), &address(&text, &file, end)?, &[("accept-encoding", "br")])?;
            assert_eq!((file.status, file.header("content-encoding")), (200, "br"), "{name}");
            size += file.body.len();
        }
        println!("{name}: {size} bytes of {budget} in Brotli");
        over.extend((size > budget).then_some(name));
    }
    assert!(over.is_empty(), "over their budgets: {over:?}");
    Ok(())
}

/// Returns the address of the file that `text` names in quotes, by the beginning and the end of the name.
fn address(text: &str, start: &str, end: &str) -> Result<String> {
    let names = text.split('"').map(|part| part.trim_start_matches("./"));
    let name = names
        .into_iter()
        .find(|name| name.starts_with(start) && name.ends_with(end))
        .with_context(|| format!("nothing names {start}"))?;
    Ok(format!("/{name}"))
}
