//! Alerts of the watch rules of a connection, after a synchronization: each is claimed, goes to the command or the webhook of its rule,
//! and is recorded once that has accepted it. After a failure, or if this process ends before, a later synchronization delivers it again.

use std::io::Write;
use std::pin::pin;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion_saved_search::connections::{AlertReceiver, WatchRule};
use datafusion_saved_search::{Alert, Claim, Connection, Due, Error, Watch, Webhook};
use tokio::signal::unix::SignalKind;

use super::blocking;
use super::hand_over::{cannot_run, end, start, wait};
use crate::{Exit, FAILED, SIGNALLED, in_command};

/// Interval in which a claim is renewed while a command runs: a third of the time that it lasts.
const RENEWAL: Duration = Duration::from_secs(100);

/// Rules, each with the receiver of its alerts.
pub(super) struct Alarms {
    rules: Vec<(Watch, Receiver)>,
    /// The command, while it runs.
    running: Arc<Mutex<Option<Child>>>,
}

enum Receiver {
    Command(Arc<str>),
    Webhook(Webhook),
}

impl Alarms {
    /// Prepares rules.
    pub(super) async fn begin(
        connection: &Arc<Connection>,
        rules: &[WatchRule],
        insecure: bool,
    ) -> Result<Self, Error> {
        let mut begun = Vec::with_capacity(rules.len());
        for rule in rules {
            let receiver = match rule.receiver()? {
                AlertReceiver::Command(command) => Receiver::Command(command.into()),
                AlertReceiver::Webhook(url) => Receiver::Webhook(Webhook::try_new(&url, insecure)?),
            };
            begun.push((Watch::begin(connection, &rule.name, &rule.aids, &rule.when).await?, receiver));
        }
        Ok(Self { rules: begun, running: Arc::default() })
    }

    /// Delivers the alerts that are due, and prints them. Returns the first failure of a receiver.
    pub(super) async fn run(&self, quiet: bool) -> Result<Option<String>, Exit> {
        let mut failure = None;
        for (watch, receiver) in &self.rules {
            let due = watch.due().await?;
            if !quiet {
                notes(watch, &due).iter().for_each(|note| eprintln!("note: {note}"));
            }
            let (mut delivered, mut elsewhere) = (true, 0);
            for alert in &due.alerts {
                let (claiming, claimed) = (watch.clone(), alert.clone());
                match blocking(move || claiming.claim(&claimed)).await? {
                    Claim::Here => {}
                    Claim::Delivered => continue,
                    // Another process delivers it. If that fails, the days are examined again.
                    _ => {
                        (delivered, elsewhere) = (false, elsewhere + 1);
                        continue;
                    }
                }
                let refused = self.deliver_claimed(watch, receiver, alert).await;
                if !matches!(refused, Ok(None)) {
                    let watch = watch.clone();
                    // If the store cannot be written, the claim ends by itself.
                    drop(blocking(move || watch.release()).await);
                }
                if let Some(reason) = refused? {
                    failure.get_or_insert_with(|| {
                        let rule = watch.name();
                        format!(
                            "an alert of watch rule `{rule}` was not accepted: {reason}; the next run delivers it again"
                        )
                    });
                    delivered = false;
                    break;
                }
                let (watch, recorded) = (watch.clone(), alert.clone());
                blocking(move || watch.record(&recorded)).await?;
                if !quiet {
                    eprintln!("alert: {alert}");
                }
            }
            if elsewhere > 0 && !quiet {
                eprintln!(
                    "note: watch rule `{}`: alerts that another process is delivering: {elsewhere}",
                    watch.name()
                );
            }
            if delivered {
                let watch = watch.clone();
                blocking(move || watch.finish(&due)).await?;
            }
        }
        Ok(failure)
    }

    /// Delivers an alert, and renews its claim meanwhile. Returns the reason if the receiver has not accepted it.
    async fn deliver_claimed(&self, watch: &Watch, receiver: &Receiver, alert: &Alert) -> Result<Option<String>, Exit> {
        let mut delivering = pin!(self.deliver(receiver, alert));
        loop {
            tokio::select! {
                done = &mut delivering => return done,
                () = tokio::time::sleep(RENEWAL) => {
                    let (watch, alert) = (watch.clone(), alert.clone());
                    // If the store cannot be written, the claim ends by itself.
                    drop(blocking(move || watch.claim(&alert)).await);
                }
            }
        }
    }

    /// Delivers an alert. Returns the reason if the receiver has not accepted it.
    async fn deliver(&self, receiver: &Receiver, alert: &Alert) -> Result<Option<String>, Exit> {
        let line = alert.to_line().into_bytes();
        match receiver {
            Receiver::Webhook(webhook) => {
                Ok(webhook.send(line).await.err().map(|error| error.line().worded(in_command)))
            }
            Receiver::Command(command) => {
                let (command, running) = (Arc::clone(command), Arc::clone(&self.running));
                let status = blocking(move || {
                    if let Some(mut stdin) = start(&command, &running)? {
                        // A command that does not read decides itself whether it has failed.
                        let _ = stdin.write_all(&line);
                    }
                    wait(&running).map_err(cannot_run)
                });
                let failed = status.await?.filter(|status| !status.success());
                Ok(failed.map(|status| format!("the command failed ({status})")))
            }
        }
    }

    /// Ends a command that runs, because this process received a signal.
    pub(super) fn stopped(&self, kind: SignalKind) -> Exit {
        end(&self.running);
        // If the store cannot be written, the claims end by themselves.
        self.rules.iter().for_each(|(watch, _)| drop(watch.release()));
        let line = "stopped; the next run delivers the alerts that were not accepted yet";
        Exit(u8::try_from(SIGNALLED + kind.as_raw_value()).unwrap_or(FAILED), Some(line.to_owned()))
    }
}

/// The days that a rule could not examine.
fn notes(watch: &Watch, due: &Due) -> Vec<String> {
    let of = |aids: &[String], what: &str| {
        (!aids.is_empty()).then(|| format!("watch rule `{}`: {what}: {}", watch.name(), aids.join(", ")))
    };
    let undecided = of(&due.undecided, "not decided, because too few days before are stored");
    undecided.into_iter().chain(of(&due.unstored, "recent days are not stored")).collect()
}
