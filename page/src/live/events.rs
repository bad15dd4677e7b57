//! The stream of a page: which of its parts have changed.

use super::Live;
use super::watch::{Seen, Watched};
use crate::address::part::{LIFE, ORDERS, Part, STANDING, STATES, TOLD, Version};
use crate::form::Form;
use crate::refusal::Refusal;
use axum::extract::{RawQuery, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use farrier_engine::Conductor;
use futures_util::stream::{Stream, unfold};
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

/// Most parts that a stream names: more than a page has.
const MOST: usize = 200;

/// A stream ends after this time. The browser asks for another one then, which it gets if its user may still look.
const STREAM_LIFE: Duration = Duration::from_secs(120);

/// A sign of life, so that a proxy does not end a stream that is silent.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Shortest time after which a browser asks for another stream, and how much longer that may be: not all ask at once.
const RETRY_MILLISECONDS: (u64, u64) = (500, 1500);

/// The version of a row whose node is gone.
const GONE: &str = "gone";

/// What a stream has sent, and where it learns what is new.
struct Sender {
    conductor: Conductor,
    watched: Watched,
    /// The node that a page is about, as opposed to the list.
    node: Option<Uuid>,
    has_states: bool,
    sent: HashMap<Uuid, String>,
    sent_states: Option<Version>,
    end: Instant,
    has_begun: bool,
}

/// `GET /page/events`
pub(crate) async fn stream(
    State(live): State<Live>,
    RawQuery(query): RawQuery,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let query = Form::of(query.unwrap_or_default().as_bytes());
    let unusable = || Refusal::bad_request("The address of the stream names a part that no page has.");
    let node = match query.text("node") {
        "" => None,
        node => Some(node.parse::<Uuid>().map_err(|_| unusable())?),
    };
    let (mut nodes, mut has_states): (Vec<_>, _) = (node.into_iter().collect(), false);
    for (_, id) in query.fields().filter(|(name, id)| *name == "part" && node.is_none() && !id.is_empty()) {
        match Part::named(id).ok_or_else(unusable)? {
            Part::States => has_states = true,
            Part::Row(uuid) => nodes.push(uuid),
        }
    }
    if nodes.len() > MOST {
        return Err(Refusal::bad_request(format!("The stream of a page names at most {MOST} nodes.")));
    }
    let sender = Sender {
        watched: live.watch.watch(nodes),
        conductor: live.conductor,
        node,
        has_states,
        sent: HashMap::new(),
        sent_states: None,
        end: Instant::now() + STREAM_LIFE,
        has_begun: false,
    };
    let events = unfold(sender, |mut sender| async move {
        let event = sender.next().await?;
        Some((Ok(event), sender))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)))
}

impl Sender {
    /// The next event; nothing at the end of the stream. The first one comes at once, so that a browser learns that there
    /// is a stream.
    async fn next(&mut self) -> Option<Event> {
        if !self.has_begun {
            self.has_begun = true;
            let (least, more) = RETRY_MILLISECONDS;
            let retry = Duration::from_millis(least + rand::random_range(0..more));
            return Some(Event::default().comment("parts").retry(retry));
        }
        loop {
            let conductor = self.conductor.clone();
            tokio::select! {
                changed = timeout_at(self.end, self.watched.seen.changed()) => changed.ok()?.ok()?,
                () = conductor.stops() => return None,
            }
            let seen = self.watched.seen.borrow_and_update().clone();
            let lines = self.changed(&seen);
            if !lines.is_empty() {
                return Some(Event::default().data(lines));
            }
        }
    }

    /// The parts whose versions were not sent yet, one a line.
    fn changed(&mut self, seen: &Seen) -> String {
        let mut lines = String::new();
        for (uuid, versions) in
            self.watched.nodes().iter().filter_map(|uuid| Some((uuid, seen.nodes.get(uuid)?)))
        {
            let seen =
                versions.map(|versions| if self.node.is_some() { versions.node } else { versions.row });
            let row = seen.map_or_else(|| GONE.to_owned(), |version| version.to_string());
            let version =
                self.node.map_or_else(|| row.clone(), |node| node_version(&self.conductor, node, &row));
            if self.sent.get(uuid) == Some(&version) {
                continue;
            }
            // A text can always be written to.
            let _ = match self.node {
                Some(_) => writeln!(
                    lines,
                    "{STANDING} {version}\n{LIFE} {version}\n{TOLD} {version}\n{ORDERS} {row}"
                ),
                None => writeln!(lines, "{} {version}", Part::Row(*uuid)),
            };
            self.sent.insert(*uuid, version);
        }
        if self.has_states && seen.states.is_some() && self.sent_states != seen.states {
            self.sent_states = seen.states;
            let _ = writeln!(
                lines,
                "{STATES} {}",
                seen.states.map(|version| version.to_string()).unwrap_or_default()
            );
        }
        lines.truncate(lines.trim_end().len());
        lines
    }
}

/// The version of the pages of a node: that of its row, with the number of events of its operation.
pub(crate) fn node_version(conductor: &Conductor, node: Uuid, row: &str) -> String {
    format!("{row}.{}", conductor.events().next_sequence(node))
}
