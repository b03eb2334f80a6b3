//! The page in a real browser, and what it weighs.

use anyhow::Result;
use tests::browser::run_journeys;
use tests::server::Server;

/// The page's WebAssembly stays below this, uncompressed.
const MODULE_BYTES: usize = 1_500_000;

#[test]
#[ignore = "needs Chromium and a program with the page: tests/run has both"]
fn journeys() -> Result<()> {
    let server = Server::start()?;
    run_journeys(&server.url())
}

#[test]
#[ignore = "needs a program with the page: tests/run has it"]
fn the_page_is_small() -> Result<()> {
    let server = Server::start()?;
    let module = server.get("/web_bg.wasm")?;
    assert_eq!(module.status, 200);
    let size = module.body.len();
    assert!(size < MODULE_BYTES, "the page's WebAssembly has {size} bytes");
    println!("the page's WebAssembly: {size} bytes");
    Ok(())
}
