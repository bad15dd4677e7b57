//! Hints to the other conductors that a node has something for its worker.
//!
//! They are sent by NOTIFY, in statements of their own: a NOTIFY within the transaction of a write would have all writers of
//! the server commit one after the other. A conductor sends at most ten in a second; the next one has all
//! changes since the last. Its own come back to it, and it leaves them out. Any hint may be missing: the records are the truth, and every
//! conductor looks at them now and then.

use crate::store::ChangeFeed;
use rand::Rng;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// The channel of the database.
const CHANNEL: &str = "farrier_changes";

/// Most hints that wait to be sent. More are forgotten.
const WAITING: usize = 1024;

/// Most nodes in one NOTIFY, whose text has 8,000 bytes at most.
const TOGETHER: usize = 200;

/// The time between two of them.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long a NOTIFY may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause before a connection that listens is opened again, in milliseconds.
const PAUSE_MS: std::ops::RangeInclusive<u64> = 5_000..=10_000;

/// Sends hints to other conductors and receives theirs, until it is dropped.
#[derive(Debug)]
pub struct Hints {
    untold: Sender<Uuid>,
    _tasks: JoinSet<()>,
}

impl Hints {
    /// Starts to send hints, and to publish those of other conductors where a connection can listen.
    pub fn start(pool: PgPool, listener: Option<PgConnectOptions>, feed: ChangeFeed) -> Self {
        let (untold, receiver) = channel(WAITING);
        let own = Uuid::new_v4();
        let mut tasks = JoinSet::new();
        tasks.spawn(send(pool, own, receiver));
        if let Some(options) = listener {
            tasks.spawn(listen(options, own, feed));
        }
        Self { untold, _tasks: tasks }
    }

    /// Sends other conductors the hint that a node has something for its worker.
    pub fn tell(&self, node: Uuid) {
        match self.untold.try_send(node) {
            // The node is found when the records are read.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Closed(_)) => {}
        }
    }
}

async fn send(pool: PgPool, own: Uuid, mut untold: Receiver<Uuid>) {
    let mut nodes = Vec::new();
    while untold.recv_many(&mut nodes, TOGETHER).await > 0 {
        let told: BTreeSet<_> = nodes.drain(..).map(|node| node.simple().to_string()).collect();
        let told = told.into_iter().collect::<Vec<_>>().join(" ");
        let told = format!("{} {told}", own.simple());
        // Identities alone: a statement without parameters is one exchange, also by a pooler.
        let notify = sqlx::raw_sql(AssertSqlSafe(format!("NOTIFY {CHANNEL}, '{told}'")));
        match timeout(PATIENCE, pool.execute(notify)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::debug!("other conductors did not get the notification of a change: {error}")
            }
            Err(_) => tracing::debug!("other conductors did not get the notification of a change in time"),
        }
        sleep(INTERVAL).await;
    }
}

/// Publishes received hints, on a connection of its own, which is opened again whenever it ends.
async fn listen(options: PgConnectOptions, own: Uuid, feed: ChangeFeed) {
    loop {
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(PATIENCE);
        let pool = pool.connect_lazy_with(options.clone());
        if let Err(error) = publish(&pool, own, &feed).await {
            tracing::debug!("changes by other conductors are found by looking alone: {error}");
        }
        pool.close().await;
        let pause = rand::rng().random_range(PAUSE_MS);
        sleep(Duration::from_millis(pause)).await;
    }
}

/// Publishes what others tell. The first identity of a hint is that of its sender, the others are nodes.
async fn publish(pool: &PgPool, own: Uuid, feed: &ChangeFeed) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    while let Some(told) = listener.try_recv().await? {
        let mut told = told.payload().split(' ').filter_map(|uuid| uuid.parse().ok());
        if told.next() != Some(own) {
            told.for_each(|node| feed.publish(node));
        }
    }
    Ok(())
}
