//! Server limits and the `[serve]` table of a configuration file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use datafusion::config::ExtensionOptions;
use serde::Deserialize;

use crate::config::{SessionSettings, read_toml};
use crate::error::{Error, ErrorKind, Result, between, nearest_name};

/// Resource limits of a server. Exceeding one fails with RESOURCE_EXHAUSTED, or DEADLINE_EXCEEDED for time limits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Length of a statement, in bytes.
    pub statement_bytes: usize,
    /// Size of a message from a client, in bytes.
    pub message_bytes: usize,
    /// Size of a request's headers, in bytes.
    pub header_bytes: u32,
    /// Authenticated connections, with or without TLS. At the limit, the connection that has been idle longest is closed.
    pub connections: usize,
    /// Authenticated connections per user or API key. At the limit, the connection of the user that has been idle longest is
    /// closed. Without authentication, there is no such limit.
    pub connections_per_principal: usize,
    /// Concurrent calls per connection.
    pub streams_per_connection: u32,
    /// Open sessions. At the limit, the session that was idle longest is closed if it was idle for at least a minute.
    pub sessions: usize,
    /// Open sessions per user or API key.
    pub sessions_per_principal: usize,
    /// Seconds without a call after which a session and its token expire.
    pub session_idle_seconds: u64,
    /// Prepared statements per session.
    pub statements: usize,
    /// Results per session that have not been fetched yet.
    pub results: usize,
    /// Seconds for which a result can be fetched, and fetched again.
    pub result_seconds: u64,
    /// Running queries of all sessions.
    pub streams: usize,
    /// Running queries per session.
    pub streams_per_session: usize,
    /// Size of a result as record batches in memory, in bytes.
    pub result_bytes: u64,
    /// Size of all temporary tables of a session, in bytes.
    pub temporary_bytes: u64,
    /// Parameter sets bound to a statement.
    pub parameter_rows: usize,
    /// Seconds that a statement may take, including the time in which the client reads its result.
    pub statement_seconds: u64,
    /// Seconds after which a query is ended if the client stops reading, and a connection of HTTP closed.
    pub unread_seconds: u64,
    /// Milliseconds without data after which an empty batch is sent, so that proxies do not close the connection as
    /// idle.
    pub keep_alive_ms: u64,
    /// Memory shared by all queries, in MiB.
    pub memory_mib: usize,
    /// Seconds for which running queries may continue after a shutdown request.
    pub drain_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            statement_bytes: 1 << 20,
            message_bytes: 64 << 20,
            header_bytes: 16 << 10,
            connections: 800,
            connections_per_principal: 250,
            streams_per_connection: 256,
            sessions: 1_000,
            sessions_per_principal: 250,
            session_idle_seconds: 1_800,
            statements: 256,
            results: 256,
            result_seconds: 600,
            streams: 512,
            streams_per_session: 64,
            result_bytes: 8 << 30,
            temporary_bytes: 256 << 20,
            parameter_rows: 1_000,
            statement_seconds: 3_600,
            unread_seconds: 300,
            keep_alive_ms: 5_000,
            memory_mib: 2_048,
            drain_seconds: 30,
        }
    }
}

impl Limits {
    /// Least [`memory_mib`](Self::memory_mib) that a configuration file or `--memory` may set: a session needs a part of it.
    pub const LEAST_MEMORY_MIB: usize = 64;

    /// Checks that all limits are in their valid range.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] naming the limit.
    pub(crate) fn check(&self) -> Result<()> {
        match self.ranges().iter().find(|(_, number, least, most)| !(*least..=*most).contains(number)) {
            Some((name, number, least, most)) => Err(Error::new(
                ErrorKind::Config,
                format!("serve.limits.{name} must be between {least} and {most}, found {number}"),
            )),
            None => Ok(()),
        }
    }

    /// The limits by name, with the least and the largest valid number of each.
    fn ranges(&self) -> [(&'static str, u64, u64, u64); 22] {
        /// Seconds in a year.
        const YEAR: u64 = 366 * 86_400;
        /// Bytes that an address space has at most.
        const BYTES: u64 = 1 << 48;
        // A further limit is checked as well.
        let Self {
            statement_bytes,
            message_bytes,
            header_bytes,
            connections,
            connections_per_principal,
            streams_per_connection,
            sessions,
            sessions_per_principal,
            session_idle_seconds,
            statements,
            results,
            result_seconds,
            streams,
            streams_per_session,
            result_bytes,
            temporary_bytes,
            parameter_rows,
            statement_seconds,
            unread_seconds,
            keep_alive_ms,
            memory_mib,
            drain_seconds,
        } = *self;
        [
            ("statement_bytes", statement_bytes as u64, 1, BYTES),
            ("message_bytes", message_bytes as u64, 1, BYTES),
            ("header_bytes", header_bytes.into(), 1, BYTES),
            ("connections", connections as u64, 1, 1 << 20),
            ("connections_per_principal", connections_per_principal as u64, 1, 1 << 20),
            ("streams_per_connection", streams_per_connection.into(), 1, 1 << 20),
            ("sessions", sessions as u64, 0, 1 << 20),
            ("sessions_per_principal", sessions_per_principal as u64, 0, 1 << 20),
            ("session_idle_seconds", session_idle_seconds, 1, YEAR),
            ("statements", statements as u64, 0, 1 << 20),
            ("results", results as u64, 0, 1 << 20),
            ("result_seconds", result_seconds, 1, YEAR),
            ("streams", streams as u64, 0, 1 << 20),
            ("streams_per_session", streams_per_session as u64, 0, 1 << 20),
            ("result_bytes", result_bytes, 0, BYTES),
            ("temporary_bytes", temporary_bytes, 0, BYTES),
            ("parameter_rows", parameter_rows as u64, 0, 1 << 20),
            ("statement_seconds", statement_seconds, 0, YEAR),
            ("unread_seconds", unread_seconds, 1, YEAR),
            ("keep_alive_ms", keep_alive_ms, 10, YEAR * 1_000),
            ("memory_mib", memory_mib as u64, 0, 1 << 24),
            ("drain_seconds", drain_seconds, 0, YEAR),
        ]
    }

    /// See [`Limits::session_idle_seconds`].
    pub(crate) fn session_idle(&self) -> Duration {
        Duration::from_secs(self.session_idle_seconds)
    }

    /// See [`Limits::memory_mib`]; at most all that can be addressed.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_mib.saturating_mul(1 << 20)
    }

    /// See [`Limits::result_seconds`].
    pub(crate) fn result_time(&self) -> Duration {
        Duration::from_secs(self.result_seconds)
    }
}

/// The `[serve]` table of a configuration file. Command-line options and environment variables take precedence. Paths
/// are relative to the file's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeDocument {
    /// Address to listen on.
    pub listen: Option<SocketAddr>,
    /// False to serve clients of PostgreSQL and browsers only.
    pub flight: Option<bool>,
    /// Address to listen on for clients of PostgreSQL.
    pub postgres_listen: Option<SocketAddr>,
    /// Address to listen on for browsers.
    pub ui: Option<SocketAddr>,
    /// Folder of dashboards.
    pub dashboards: Option<PathBuf>,
    /// `none`, `users` or `pass-through`.
    pub auth: Option<String>,
    /// Users file, for `auth = "users"`.
    pub users_file: Option<PathBuf>,
    /// Set to allow credentials in clear text on a non-loopback address.
    pub insecure: Option<bool>,
    /// Certificate chain of the server (PEM).
    pub tls_cert: Option<PathBuf>,
    /// Private key of the server (PEM).
    pub tls_key: Option<PathBuf>,
    /// Certificate authorities for client certificates (PEM).
    pub client_ca: Option<PathBuf>,
    /// Address of `/healthz` and `/metrics`.
    pub operations: Option<SocketAddr>,
    /// URLs of workers.
    pub workers: Vec<String>,
    /// The server's certificate for workers (PEM).
    pub worker_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM).
    pub worker_key: Option<PathBuf>,
    /// Certificate authorities of workers (PEM).
    pub worker_ca: Option<PathBuf>,
    /// Size of stored files in bytes that one partition reads.
    pub worker_partition_bytes: Option<usize>,
    /// Resource limits.
    pub limits: Limits,
    /// Initial settings of sessions, by name without the prefix `savedsearch.`.
    pub settings: BTreeMap<String, String>,
}

impl ServeDocument {
    /// Reads the `[serve]` table of a file; the defaults if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] naming the file and the line.
    pub fn read(path: &Path) -> Result<Self> {
        #[derive(Default, Deserialize)]
        struct Document {
            #[serde(default)]
            serve: ServeDocument,
        }
        let Document { mut serve } = read_toml(path).map_err(with_section)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let paths = [
            &mut serve.dashboards,
            &mut serve.users_file,
            &mut serve.tls_cert,
            &mut serve.tls_key,
            &mut serve.client_ca,
            &mut serve.worker_cert,
            &mut serve.worker_key,
            &mut serve.worker_ca,
        ];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&path);
        }
        if serve.limits.memory_mib < Limits::LEAST_MEMORY_MIB {
            let found = serve.limits.memory_mib;
            let line = format!(
                "{}: serve.limits.memory_mib must be at least {}, found {found}",
                path.display(),
                Limits::LEAST_MEMORY_MIB
            );
            return Err(Error::new(ErrorKind::Config, line));
        }
        Ok(serve)
    }
}

/// Adds to an error about an unknown key the section in which a limit or a setting has that name, or a similar one.
fn with_section(error: Error) -> Error {
    let unknown = between(error.message(), "unknown field `", "`").filter(|_| error.remedy().is_none());
    let Some(name) = unknown.map(str::to_owned) else { return error };
    let limits = Limits::default().ranges().map(|(name, ..)| name);
    let settings = SessionSettings::default().entries();
    let settings: Vec<&str> = settings.iter().filter_map(|entry| entry.key.strip_prefix("savedsearch.")).collect();
    let limit = nearest_name(&name, &limits).map(|near| (near, "limits"));
    match limit.or_else(|| nearest_name(&name, &settings).map(|near| (near, "settings"))) {
        Some((near, section)) => error.advice(format!("did you mean {near} in [serve.{section}]?")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serve_table_of_a_file_is_read_and_its_mistakes_are_placed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("savedsearch.toml");
        let text = "[serve]\nlisten = \"127.0.0.1:0\"\nusers_file = \"users.toml\"\n[serve.limits]\nstreams = 7\n\
                    [serve.settings]\nfreshness = \"15m\"\n";
        std::fs::write(&path, text).expect("written");
        let serve = ServeDocument::read(&path).expect("a document");
        assert_eq!(serve.users_file, Some(folder.path().join("users.toml")));
        assert_eq!(serve.settings, BTreeMap::from([("freshness".to_owned(), "15m".to_owned())]));
        assert_eq!(serve.limits, Limits { streams: 7, ..Limits::default() });
        std::fs::write(&path, "[serve]\n\nlisten = \"here\"\n").expect("written");
        let error = ServeDocument::read(&path).expect_err("invalid address").to_string();
        assert!(error.contains("line 3"), "{error}");
        std::fs::write(&path, "[serve.limits]\nstream = 7\n").expect("written");
        let error = ServeDocument::read(&path).expect_err("unknown limit").to_string();
        assert!(error.contains("unknown field `stream`"), "{error}");
        for (text, advice) in [
            ("[serve]\nmemory = 100\n", "did you mean memory_mib in [serve.limits]?"),
            ("[serve]\nmax_request = 5\n", "did you mean max_requests in [serve.settings]?"),
            ("[serve.limits]\nmemory = 100\n", "did you mean memory_mib?"),
            ("[serve]\nlistn = \"127.0.0.1:0\"\n", "did you mean listen?"),
        ] {
            std::fs::write(&path, text).expect("written");
            let error = ServeDocument::read(&path).expect_err(text).to_string();
            assert!(error.contains("unknown field") && error.ends_with(advice), "{error}");
        }
        std::fs::write(&path, "[serve.limits]\nmemory_mib = 1\n").expect("written");
        let error = ServeDocument::read(&path).expect_err("too little memory").to_string();
        assert!(error.ends_with("serve.limits.memory_mib must be at least 64, found 1"), "{error}");
    }
}
