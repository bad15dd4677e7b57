//! A conductor with its page, and users of both roles.

use crate::browser::Browser;
use async_trait::async_trait;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use farrier_access::{Authorization, Denial, Identity, Role};
use farrier_conductor::model::clock::Clock;
use farrier_conductor::model::{NewNode, Node, NodeInterfaces};
use farrier_conductor::testing::{FakeMachine, JumpingClock};
use farrier_conductor::{Drivers, Settings};
use farrier_drivers::fake::{FAKE_HARDWARE, with_fake_hardware};
use farrier_engine::Conductor;
use farrier_engine::store::NodeStore;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_page::{Site, page_router};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

/// Users with their passwords and roles.
pub const USERS: [(&str, &str, Role); 3] =
    [("anna", "anvil", Role::Admin), ("ben", "bellows", Role::Admin), ("rita", "rasp", Role::Reader)];

/// The token of an administrator.
pub const TOKEN: &str = "horseshoe";

/// A password that throttles.
pub const TOO_FAST: &str = "too fast";

/// The users, until one of them is removed.
#[derive(Default)]
pub struct Users {
    pub removed: Mutex<Option<&'static str>>,
}

#[async_trait]
impl Authorization for Users {
    async fn identify(&self, request: &Parts) -> Result<Identity, Denial> {
        let unknown = || Denial::Unauthenticated { reason: "who is it?".to_owned(), challenges: Vec::new() };
        if request.headers.get("x-auth-token").is_some_and(|token| token == TOKEN) {
            return Ok(Identity { name: "ci".to_owned(), role: Role::Admin });
        }
        let basic =
            request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
        let basic = basic.ok_or_else(unknown)?;
        if basic == STANDARD.encode(format!("anna:{TOO_FAST}")) {
            return Err(Denial::Throttled { retry_after: Duration::from_secs(7) });
        }
        let known =
            USERS.iter().find(|(name, password, _)| basic == STANDARD.encode(format!("{name}:{password}")));
        let (name, _, role) = known.ok_or_else(unknown)?;
        match *self.removed.lock().unwrap() == Some(*name) {
            true => Err(unknown()),
            false => Ok(Identity { name: (*name).to_owned(), role: *role }),
        }
    }
}

/// Everyone, as where there is no authentication.
pub struct Anybody;

#[async_trait]
impl Authorization for Anybody {
    async fn identify(&self, _: &Parts) -> Result<Identity, Denial> {
        Ok(Identity { name: "anybody".to_owned(), role: Role::Admin })
    }
}

pub struct Stage {
    pub conductor: Conductor,
    pub store: Arc<SqliteStore>,
    pub clock: JumpingClock,
    pub users: Arc<Users>,
    pub url: String,
    /// Those of each node.
    driver: String,
    interfaces: NodeInterfaces,
    _folder: tempfile::TempDir,
}

/// Machines on which no agent ever starts.
fn unanswering() -> (&'static str, Drivers) {
    ("fake", FakeMachine::default().drivers(Drivers::default(), ["direct"]))
}

impl Stage {
    /// A stage without nodes, whose users sign in.
    pub async fn new() -> Self {
        let users = Arc::<Users>::default();
        Self::with(users.clone(), users, unanswering()).await
    }

    /// The same, with machines that carry out each order at once.
    pub async fn with_fake_hardware() -> Self {
        let users = Arc::<Users>::default();
        Self::with(users.clone(), users, (FAKE_HARDWARE, with_fake_hardware(Drivers::default()))).await
    }

    /// A stage that asks no one who they are.
    pub async fn open() -> Self {
        Self::with(Arc::new(Anybody), Arc::default(), unanswering()).await
    }

    async fn with(
        authorization: Arc<dyn Authorization>,
        users: Arc<Users>,
        (driver, drivers): (&str, Drivers),
    ) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
        let clock = JumpingClock::default();
        let settings = Settings { automated_clean: false, ..Settings::new("http://192.0.2.1:6385") };
        let builder = Conductor::builder(settings, store.clone(), drivers).clock(clock.clone());
        let conductor = builder.start().await.unwrap();
        let template = NewNode { driver: driver.to_owned(), ..NewNode::default() };
        let template = conductor.create_node(template).await.unwrap();
        conductor.remove_node(&template.uuid.to_string()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = page_router(conductor.clone(), authorization, Site { is_https: false });
        tokio::spawn(axum::serve(listener, router).into_future());
        Self {
            conductor,
            store,
            clock,
            users,
            url,
            driver: driver.to_owned(),
            interfaces: template.interfaces,
            _folder: folder,
        }
    }

    /// A browser that nobody has signed in with.
    pub fn browser(&self) -> Browser {
        Browser::new(&self.url)
    }

    /// A browser that a user has signed in with.
    pub async fn signed_in(&self, name: &str) -> Browser {
        let browser = self.browser();
        let (_, password, _) = USERS.iter().find(|(user, ..)| *user == name).unwrap();
        let answer = browser.sign_in(&[("user", name), ("password", password)]).await;
        assert_eq!(answer.status, 303, "{}", answer.body);
        browser
    }

    /// Has the conductor carry out orders from now on.
    pub fn run(&self) {
        let conductor = self.conductor.clone();
        tokio::spawn(async move { conductor.run().await });
    }

    /// A node as it is written down, whatever it is like.
    pub async fn node(&self, name: &str, change: impl FnOnce(&mut Node)) -> Node {
        let new = NewNode { name: Some(name.to_owned()), driver: self.driver.clone(), ..NewNode::default() };
        let mut node = Node::enrol(new, self.clock.now());
        node.interfaces = self.interfaces.clone();
        change(&mut node);
        self.store.create(&node).await.unwrap();
        node
    }

    pub async fn read(&self, node: &Node) -> Node {
        self.conductor.node(&node.uuid.to_string()).await.unwrap()
    }

    /// What happened to a node, and who wanted it.
    pub async fn store_history(&self, node: &Node) -> Vec<(Option<String>, String)> {
        let history = self.conductor.store().history(node.uuid).await.unwrap();
        history.into_iter().map(|entry| (entry.user, entry.event)).collect()
    }
}
