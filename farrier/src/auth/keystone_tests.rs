//! A Keystone that says of tokens what they say of themselves, and what is made of that.

use super::*;
use crate::auth::{Credential, Entry, UsersFile};
use axum::extract::State;
use axum::http::Request;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Answers as Keystone about tokens that say what they are: a role, and whether it is of the system; or what is answered to every
/// other question.
async fn token(State(asked): State<Arc<AtomicUsize>>, headers: HeaderMap) -> Result<Json<Value>, StatusCode> {
    let count = asked.fetch_add(1, Ordering::Relaxed);
    let subject = headers[X_SUBJECT_TOKEN].to_str().unwrap();
    assert_eq!(headers[X_AUTH_TOKEN], subject);
    let (role, scope) = subject.split_once('-').ok_or(StatusCode::NOT_FOUND)?;
    let expires = if scope == "past" { "2020-01-01T00:00:00.000000Z" } else { "2999-01-01T00:00:00.000000Z" };
    let mut token =
        json!({"user": {"name": "me", "id": "1"}, "roles": [{"name": role}], "expires_at": expires});
    match scope {
        scope if scope.starts_with("once") && count % 2 == 0 => {
            return Err(scope["once".len()..].parse().unwrap());
        }
        "broken" => return Err(StatusCode::BAD_GATEWAY),
        "project" => token["project"] = json!({"name": "baremetal", "domain": {"id": "default"}}),
        "theirs" => token["project"] = json!({"name": "theirs", "domain": {"id": "default"}}),
        "elsewhere" => token["project"] = json!({"name": "baremetal", "domain": {"id": "theirs"}}),
        "long" => token["user"]["name"] = json!("x".repeat(LONGEST)),
        _ => token["system"] = json!({"all": true}),
    }
    Ok(Json(json!({"token": token})))
}

async fn keystone() -> (Arc<AtomicUsize>, Keystone) {
    rustls::crypto::ring::default_provider().install_default().ok();
    let asked = Arc::<AtomicUsize>::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/identity", listener.local_addr().unwrap()).parse().unwrap();
    let router = Router::new().route("/identity/v3/auth/tokens", get(token)).with_state(Arc::clone(&asked));
    tokio::spawn(axum::serve(listener, router).into_future());
    let mut users = UsersFile::default();
    let credential = Credential::of_token(b"local");
    users.set(Entry { name: "local".to_owned(), credential, role: Role::Admin });
    let operators = Operators::new(watch::channel(Arc::new(users)).1);
    (asked, Keystone::new(operators, &url, None, vec!["baremetal".to_owned()]).unwrap())
}

async fn identify(keystone: &Keystone, token: &str) -> Result<Role, u16> {
    let request = Request::builder().header(X_AUTH_TOKEN, token).body(()).unwrap();
    let found = keystone.identify(&request.into_parts().0).await;
    found.map(|identity| identity.role).map_err(|denial| match denial {
        Denial::Unauthenticated { .. } => 401,
        Denial::Forbidden { .. } => 403,
        Denial::Throttled { .. } => 429,
        Denial::Unavailable { .. } => 503,
    })
}

#[tokio::test]
async fn n19_keystone_knows_whose_a_token_is_and_the_file_comes_first() {
    let (asked, keystone) = keystone().await;
    for (token, expected) in [
        ("admin-system", Ok(Role::Admin)),
        ("reader-system", Ok(Role::Reader)),
        ("admin-project", Err(403)),
        ("reader-project", Err(403)),
        ("baremetal_admin-project", Ok(Role::Admin)),
        ("baremetal_observer-project", Ok(Role::Reader)),
        ("baremetal_admin-system", Ok(Role::Admin)),
        ("baremetal_admin-theirs", Err(403)),
        ("baremetal_observer-theirs", Err(403)),
        ("baremetal_admin-elsewhere", Err(403)),
        ("admin-long", Err(503)),
        ("nobody", Err(401)),
        ("admin-broken", Err(503)),
        ("admin-past", Err(401)),
    ] {
        assert_eq!(identify(&keystone, token).await, expected, "{token}");
    }
    let before = asked.load(Ordering::Relaxed);
    assert_eq!(identify(&keystone, "local").await, Ok(Role::Admin));
    assert_eq!(identify(&keystone, "admin-system").await, Ok(Role::Admin));
    assert_eq!(asked.load(Ordering::Relaxed), before, "what is known is not asked again");
}

#[tokio::test]
async fn n19_unknown_tokens_are_remembered_and_counted_and_known_ones_are_not_stopped() {
    let (asked, keystone) = keystone().await;
    assert_eq!(identify(&keystone, "admin-system").await, Ok(Role::Admin));
    for _ in 0..50 {
        assert_eq!(identify(&keystone, "unknown").await, Err(401));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 3, "it is asked about twice");
    let mut answers = Vec::new();
    for number in 0..UNKNOWN.burst * 2 {
        answers.push(identify(&keystone, &format!("made{number}")).await);
    }
    assert!(answers.contains(&Err(429)), "{answers:?}");
    assert!(asked.load(Ordering::Relaxed) <= 3 + UNKNOWN.burst as usize + 5);
    assert_eq!(identify(&keystone, "admin-system").await, Ok(Role::Admin));
    assert_eq!(identify(&keystone, "local").await, Ok(Role::Admin));
}

#[tokio::test]
async fn c01_one_wrong_answer_about_a_token_is_asked_for_again() {
    for status in [401, 403, 404, 409, 412, 429, 500, 503] {
        let (asked, keystone) = keystone().await;
        let token = format!("admin-once{status}");
        let expected = if matches!(status, 401 | 404) { 401 } else { 503 };
        assert_eq!(identify(&keystone, &token).await, Err(expected), "{status}");
        for _ in 0..2 {
            assert_eq!(identify(&keystone, &token).await, Ok(Role::Admin), "{status}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
}

#[tokio::test]
async fn who_shows_nothing_is_asked_for_a_token_or_a_password() {
    let (_, keystone) = keystone().await;
    let request = Request::builder().body(()).unwrap();
    let denial = keystone.identify(&request.into_parts().0).await.unwrap_err();
    let Denial::Unauthenticated { challenges, .. } = denial else { panic!("{denial:?}") };
    let said = challenges.iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>().join(", ");
    assert!(said.contains("Basic realm") && said.contains("Keystone uri=\"http://127.0.0.1:"), "{said}");
}
