//! Who is let in, until when, and by which forms.

use crate::browser::Browser;
use crate::markup::text;
use crate::stage::{Stage, TOKEN, TOO_FAST};
use farrier_conductor::model::ProvisionState;

#[tokio::test]
async fn a_page_is_for_those_who_have_signed_in() {
    let stage = Stage::new().await;
    let browser = stage.browser();
    for path in ["/page/", "/page/nodes/n1", "/page/nodes/none/history", "/page/nowhere"] {
        let answer = browser.get(path).await.expect(401);
        assert!(answer.header("www-authenticate").starts_with("FarrierPage"), "{path}");
        assert_eq!(
            answer.form("/page/sign-in").filled(&[]).iter().find(|(name, _)| name == "then").unwrap().1,
            path
        );
    }
    for (fields, status, said) in [
        (vec![("user", "anna"), ("password", "wrong")], 401, "is wrong"),
        (vec![("user", "no:colon"), ("password", "x")], 401, "is wrong"),
        (vec![("user", "nobody"), ("password", "")], 401, "is wrong"),
        (vec![("token", "wrong")], 401, "is wrong"),
        (vec![("token", "w\u{1F40E}\r\nng")], 401, "is wrong"),
        (vec![], 400, "Give a name"),
        (vec![("user", "anna"), ("password", TOO_FAST)], 429, "wait 7 s"),
    ] {
        let answer = browser.sign_in(&fields).await.expect(status);
        assert!(text(&answer.body).contains(said), "{fields:?}: {}", answer.body);
    }
    for fields in [vec![("user", "anna"), ("password", "anvil")], vec![("token", TOKEN)]] {
        let browser = stage.browser();
        let answer = browser.sign_in(&fields).await.expect(303);
        assert_eq!(answer.location(), "/page/");
        let cookie = answer.header("set-cookie");
        assert!(cookie.ends_with("; Path=/page; HttpOnly; SameSite=Strict"), "{cookie}");
        let page = browser.page("/page/").await;
        assert!(text(&page.body).contains("(admin)"));
        let out = browser.submit(&page.form("/page/sign-out"), &[]).await.expect(303);
        assert_eq!(out.location(), "/page/sign-in?out=yes");
        browser.get("/page/").await.expect(401);
    }
}

#[tokio::test]
async fn a_form_after_signing_in_leads_back_to_where_one_was() {
    let stage = Stage::new().await;
    let browser = stage.browser();
    let form = browser.get("/page/?state=active&q=%3Cb%3E").await.expect(401).form("/page/sign-in");
    let answer = browser.submit(&form, &[("token", TOKEN)]).await.expect(303);
    assert_eq!(answer.location(), "/page/?state=active&q=%3Cb%3E");
    for elsewhere in ["https://evil.example/", "//evil.example/page/", "/v1/nodes"] {
        let browser = stage.browser();
        let form = browser.get("/page/").await.expect(401).form("/page/sign-in");
        let answer = browser.submit(&form, &[("token", TOKEN), ("then", elsewhere)]).await.expect(303);
        assert_eq!(answer.location(), "/page/", "{elsewhere}");
    }
}

/// An attacker may have set the cookie of a browser before its user signs in, and would know the identity.
#[tokio::test]
async fn a_session_has_an_identity_that_no_one_knew_before() {
    let stage = Stage::new().await;
    let browser = stage.browser();
    browser.get("/page/").await.expect(401);
    let before = browser.cookie.lock().unwrap().clone().unwrap();
    browser.sign_in(&[("token", TOKEN)]).await.expect(303);
    let after = browser.cookie.lock().unwrap().clone().unwrap();
    assert_ne!(before, after);
    let other = stage.browser();
    *other.cookie.lock().unwrap() = Some(before);
    other.get("/page/").await.expect(401);
}

#[tokio::test]
async fn a_login_that_expires_between_form_and_order_leads_to_a_form_and_orders_nothing() {
    let stage = Stage::new().await;
    let node = stage.node("n1", |node| node.provision_state = ProvisionState::Available).await;
    let path = format!("/page/nodes/{}", node.uuid);
    let browser = stage.signed_in("anna").await;
    let order = browser.page(&path).await.form("/orders/manage");
    stage.clock.jump(time::Duration::minutes(61));
    let answer = browser.submit(&order, &[]).await.expect(401);
    assert!(
        text(&answer.body).contains("Nothing was ordered: sign in, and give the order again."),
        "{}",
        answer.body
    );
    assert_eq!(stage.read(&node).await.provision_state, ProvisionState::Available);
    let again =
        browser.submit(&answer.form("/page/sign-in"), &[("user", "anna"), ("password", "anvil")]).await;
    assert_eq!(again.expect(303).location(), path);
    let order = browser.page(&path).await.form("/orders/manage");
    browser.submit(&order, &[]).await.expect(303);
    assert_eq!(stage.read(&node).await.provision_state, ProvisionState::Manageable);
}

#[tokio::test]
async fn a_user_who_was_removed_is_out_at_once_and_in_again_when_that_was_a_mistake() {
    let stage = Stage::new().await;
    let browser = stage.signed_in("anna").await;
    browser.page("/page/").await;
    *stage.users.removed.lock().unwrap() = Some("anna");
    browser.get("/page/").await.expect(401);
    *stage.users.removed.lock().unwrap() = None;
    browser.page("/page/").await;
}

#[tokio::test]
async fn a_link_of_another_site_does_not_sign_anyone_out() {
    let stage = Stage::new().await;
    let browser = stage.signed_in("anna").await;
    // Browsers hold the cookie back for such a request.
    let elsewhere = Browser::new(&stage.url);
    let request = elsewhere.request("/page/?state=active").header("sec-fetch-site", "cross-site");
    let answer = elsewhere.send(request).await.expect(200);
    assert_eq!(answer.header("refresh"), "0; url=/page/?state=active");
    assert!(!answer.headers.contains_key("set-cookie"), "it would replace the cookie that there is");
    browser.page("/page/?state=active").await;
}

#[tokio::test]
async fn every_answer_keeps_others_out() {
    let stage = Stage::new().await;
    let node = stage.node("n1", |_| {}).await;
    let browser = stage.signed_in("rita").await;
    let overview = format!("/page/nodes/{}", node.uuid);
    for (path, status) in [
        ("/page", 303),
        ("/page/", 200),
        (&overview, 200),
        ("/page/sign-in", 200),
        ("/page/nodes/none", 404),
        ("/page/nowhere", 404),
        ("/page/?state=nowhere", 400),
    ] {
        let answer = browser.get(path).await.expect(status);
        assert_eq!(
            answer.header("content-security-policy"),
            "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        );
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert_eq!(answer.header("referrer-policy"), "same-origin");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
    let page = browser.page("/page/").await.body;
    let style = page.split("href=\"/page/style-").nth(1).unwrap().split('"').next().unwrap();
    let style = Browser::new(&stage.url).get(&format!("/page/style-{style}")).await.expect(200);
    assert!(style.header("cache-control").contains("immutable"));
    assert!(style.body.contains("color-scheme: light dark"), "{}", style.body);
    assert!(!style.headers.contains_key("set-cookie"));
    assert!(page.len() + style.body.len() < 80 << 10);
}

#[tokio::test]
async fn where_there_is_no_authentication_no_one_signs_in_and_forms_are_checked_nevertheless() {
    let stage = Stage::open().await;
    let node = stage.node("n1", |node| node.provision_state = ProvisionState::Available).await;
    let browser = stage.browser();
    let page = browser.page(&format!("/page/nodes/{}", node.uuid)).await;
    assert!(page.forms().iter().all(|form| form.action != "/page/sign-out"));
    let order = page.form("/orders/manage");
    browser.post(&order.action, &order.without("form_token")).await.expect(403);
    Browser::new(&stage.url).submit(&order, &[]).await.expect(403);
    browser.submit(&order, &[]).await.expect(303);
    assert_eq!(stage.read(&node).await.provision_state, ProvisionState::Manageable);
}
