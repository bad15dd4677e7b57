//! The page in Chromium: what its script does, how it looks, and how far a user is from an answer.

mod life;
mod line;
mod live;
mod looks;
mod questions;

use crate::stage::{TOKEN, USERS};
use farrier_tests::browser::{Chromium, Scripts};

/// A browser in which a user has signed in to the conductor at an address.
async fn signed_in(url: &str, user: &str, scripts: Scripts) -> Chromium {
    let browser = Chromium::start(scripts).await.unwrap();
    browser.go(&format!("{url}/page/")).await.unwrap();
    sign_in(&browser, user).await;
    browser
}

/// Fills in the form for signing in, which the browser shows.
async fn sign_in(browser: &Chromium, user: &str) {
    let (_, password, _) = USERS.iter().find(|(name, ..)| *name == user).unwrap();
    browser.fill("#user", user).await.unwrap();
    browser.fill("#password", password).await.unwrap();
    browser.click(".sign-in button").await.unwrap();
    browser.wait_for(".visitor", user).await.unwrap();
}

#[tokio::test]
async fn browser_signs_in_with_a_password_or_a_token_and_out() {
    let stage = crate::stage::Stage::new().await;
    let browser = Chromium::start(Scripts::Run).await.unwrap();
    browser.go(&format!("{}/page/?state=active", stage.url)).await.unwrap();
    browser.fill("#user", "anna").await.unwrap();
    browser.fill("#password", "wrong").await.unwrap();
    browser.click(".sign-in button").await.unwrap();
    browser.wait_for("[role=alert]", "is wrong").await.unwrap();
    assert_eq!(browser.attribute("#user", "value").await.unwrap().as_deref(), Some("anna"));
    browser.fill("#password", "anvil").await.unwrap();
    browser.click(".sign-in button").await.unwrap();
    browser.wait_for(".visitor", "anna (admin)").await.unwrap();
    // The page that was asked for.
    assert!(browser.address().await.unwrap().ends_with("/page/?state=active"));
    browser.click(".visitor button").await.unwrap();
    browser.wait_for("[role=alert]", "You have signed out.").await.unwrap();
    browser.fill("#token", TOKEN).await.unwrap();
    browser.click(".sign-in button").await.unwrap();
    browser.wait_for(".visitor", "ci (admin)").await.unwrap();
}
