//! Names of functions that a user of the library calls, and of commands that a user of the program runs, to mend an error.
//!
//! ```text
//! process of an embedder            run `Connection::verify_store`
//! process of the program, driver    run `savedsearch store verify`
//! ```
//!
//! Messages are written to logs and tables as well, which belong to no front. So the words are those of the process: the program
//! chooses its own when it starts. A function that each front passes along was rejected, because those places have none.
//!
//! Invariant: without a choice, the words are those of the library.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// True in a process of the program.
static OF_PROGRAM: AtomicBool = AtomicBool::new(false);

/// Makes the errors of this process name commands and options of the program `savedsearch` instead of functions of the library. Call it
/// before anything else: messages that exist keep their words.
#[doc(hidden)]
pub fn use_words_of_program() {
    OF_PROGRAM.store(true, Ordering::Relaxed);
}

/// The first words in a process of an embedder, the others in one of the program.
pub(super) fn of_process<T>(library: T, program: T) -> T {
    if OF_PROGRAM.load(Ordering::Relaxed) { program } else { library }
}

/// Declares the tools: the words of the library, and those of the program.
macro_rules! tools {
    ($($variant:ident = $library:literal, $program:literal;)*) => {
        /// Function, type or argument of the library for which the program has a command or an option. `Display` has the words of
        /// the process.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
        #[non_exhaustive]
        pub enum Tool {
            $(#[doc = concat!($library, ", or ", $program, ".")] $variant,)*
        }

        impl Tool {
            /// All tools.
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$variant),*];

            /// The words of the library.
            pub fn in_library(self) -> &'static str {
                match self {
                    $(Self::$variant => $library,)*
                }
            }

            /// The words of the program.
            pub fn in_program(self) -> &'static str {
                match self {
                    $(Self::$variant => $program,)*
                }
            }
        }
    };
}

tools! {
    OpenStore = "`ConnectionBuilder::store`", "--store DIR or SAVEDSEARCH_STORE";
    VerifyStore = "`Connection::verify_store`", "`savedsearch store verify`";
    CompactStore = "`Connection::compact_store`", "`savedsearch store compact`";
    IndexStore = "`Connection::index_store`", "`savedsearch store index`";
    IndexColumns = "in `Connection::index_store`", "with `savedsearch store index --column`";
    RemoveIndexes = "`Connection::remove_indexes`", "`savedsearch store index --off`";
    KeepVersions = "`Connection::keep_versions`", "`savedsearch store versions`";
    EraseBefore = "`Erase::Before`", "--before";
    Sync = "`sync`", "`savedsearch sync`";
    Rescan = "`SyncOptions::rescan`", "`savedsearch sync --rescan`";
    WebhookInsecure = "`insecure` of `Webhook::try_new`", "--insecure";
    AuthUsers = "`Auth::Users`", "--auth users";
    AuthPassThrough = "`Auth::PassThrough`", "--auth pass-through";
    HashPassword = "`host::hash_password`", "`savedsearch serve --hash-password`";
    ScramVerifier = "`postgres::scram_verifier`", "`savedsearch serve --scram-verifier`";
    ServerTls = "`tls`", "--tls-cert and --tls-key";
    ServerInsecure = "`insecure`", "--insecure";
    ServerSettings = "in its `SessionSettings`", "with --set";
    AskingEstimate = "a session of `Shell`", "`savedsearch sql --estimate=ask`";
    CallRequests = "`McpLimits::max_requests`", "--max-requests";
    ProbeRequests = "`max_requests` of `ProfileTools::new`", "--max-requests";
    ProbeFact = "`Facts::fact`", "--fact";
    ProbeExample = "`Facts::example`", "--example";
    CheckProfile = "`profile_check::compare`", "`savedsearch profile check`";
    UseProfile = "`ConnectionBuilder::profile`", "--profile";
    WorkerMemory = "`WorkerSpec::memory_mib`", "--memory-mib";
    WorkerStores = "in `WorkerSpec::stores`", "with --store";
    WorkerTls = "`WorkerSpec::tls`", "--tls-cert, --tls-key and --client-ca";
    WorkersTls = "`WorkersSpec::tls`", "--worker-cert, --worker-key and --worker-ca";
    ClientAuthorities = "`TlsSpec::client_authorities`", "--client-ca";
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(of_process(self.in_library(), self.in_program()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn the_library_names_no_commands_and_options() {
        each(Tool::ALL.iter().copied(), |tool| {
            let words = tool.in_library();
            assert!(!words.contains("--") && !words.contains("savedsearch") && words.contains('`'), "{words}");
            assert_eq!(tool.to_string(), words, "the words of a process that has chosen none");
            let words = tool.in_program();
            assert!(words.contains("--") || words.starts_with("`savedsearch "), "{words}");
        });
    }
}
