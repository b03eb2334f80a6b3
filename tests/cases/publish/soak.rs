//! A server that is stopped for a time, as a machine that swaps or sleeps: nothing is lost, and the job doesn't wait.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use recorder::WhenFull;
use tests::server::Server;
use tests::stream::Random;
use tests::{Folder, soak};
use trace::limits::PublishLimits;

use crate::session::{LONG, Session, limits};

#[test]
fn a_server_that_is_stopped_and_goes_on_has_everything() -> Result<()> {
    for seed in soak::rounds(1) {
        let folder = Folder::new("stopped")?;
        let server = Server::start_in(&folder.join("data"), &[])?;
        let file = folder.join("beside.vramscope");
        // The real times, but for the wait for an answer, which must be shorter than the stop.
        let (answer, stop) = match soak::time() {
            Some(_) => (15_000, Duration::from_secs(40)),
            None => (400, Duration::from_secs(2)),
        };
        let limits = PublishLimits { answer_millis: answer, backoff_cap_millis: 500, ..limits() };
        let mut session = Session::start(&server.url(), &file, limits, WhenFull::Count)?;
        let mut random = Random::new(seed);
        session.record_slowly(5 + random.below(30), 100);
        server.signal("STOP")?;
        let begun = Instant::now();
        let mut longest = Duration::ZERO;
        while begun.elapsed() < stop {
            let since = Instant::now();
            session.record(1 + random.below(200));
            longest = longest.max(since.elapsed());
            std::thread::sleep(Duration::from_millis(10));
        }
        server.signal("CONT")?;
        ensure!(longest < Duration::from_millis(500), "the job waited {longest:?}");
        session.record_slowly(10, 100);
        let (next, id) = (session.next, session.publisher.session().to_owned());
        let (recorded, published) = session.finish(LONG);
        assert_eq!((recorded.events, recorded.lost, published.undelivered()), (next, 0, 0), "{published:?}");
        ensure!(published.is_ended, "{published:?}");
        let got = server.get(&format!("/api/v1/sessions/{id}/trace?format=vramscope"))?;
        ensure!(got.status == 200 && got.body == std::fs::read(&file)?, "the server has other bytes than the file");
    }
    Ok(())
}
