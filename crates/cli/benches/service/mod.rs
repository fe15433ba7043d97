//! A simulator in a separate process for the benchmarks, killed on drop.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use datafusion_saved_search::simulator::KEY;
use datafusion_saved_search::{Clock, Connection, Profile, Secret};

/// The time of the client's and the service's fixed clocks.
const NOW: &str = "2026-07-01T12:00:00Z";

/// The service, with one saved search.
pub(crate) struct Service {
    child: Child,
    pub(crate) base_url: String,
    /// Maximum of mentions in a page.
    page: u64,
}

impl Service {
    pub(crate) fn start(mentions: usize, delay_ms: u64, page: u64) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_savedsearch"))
            .args(["simulate", "--listen", "127.0.0.1:0", "--searches", "1", "--now", NOW])
            .args(["--mentions", &mentions.to_string(), "--delay-ms", &delay_ms.to_string()])
            .args(["--largest-page", &page.to_string()])
            .stderr(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stderr.take().ok_or("no stderr")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ").ok_or(line.clone())?;
        Ok(Self { base_url: format!("http://{address}/v4"), child, page })
    }

    pub(crate) fn connection(&self) -> Result<Arc<Connection>, Box<dyn Error>> {
        let mut profile = Profile::v4();
        profile.page.max = self.page;
        let builder = Connection::builder(&self.base_url, Secret::new(KEY)?).clock(Clock::fixed(NOW.parse()?));
        Ok(builder.profile(profile).build()?)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Our own child process, with no state to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
