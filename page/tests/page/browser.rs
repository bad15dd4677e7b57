//! A browser that runs no script: it keeps a cookie, follows no redirect by itself, and checks the markup of each page.

use crate::forms::{Form, forms};
use crate::markup;
use reqwest::header::{COOKIE, HeaderMap, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};
use std::sync::Mutex;

pub struct Browser {
    http: Client,
    url: String,
    pub cookie: Mutex<Option<String>>,
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Where it leads to.
    pub fn location(&self) -> &str {
        self.header("location")
    }

    pub fn forms(&self) -> Vec<Form> {
        forms(&self.body)
    }

    /// The form that is sent to this path.
    pub fn form(&self, action: &str) -> Form {
        let found = self.forms().into_iter().find(|form| form.action.ends_with(action));
        found.unwrap_or_else(|| panic!("no form of {action} in {}", self.body))
    }

    /// Refuses an answer of another status, and tells what came instead.
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }
}

impl Browser {
    pub fn new(url: &str) -> Self {
        let http = Client::builder().tls_certs_only([]).redirect(Policy::none()).build().unwrap();
        Self { http, url: url.to_owned(), cookie: Mutex::default() }
    }

    pub async fn get(&self, path: &str) -> Answer {
        let answer = self.send(self.http.get(format!("{}{path}", self.url))).await;
        if answer.header("content-type").starts_with("text/html") {
            markup::check(path, &answer.body);
        }
        answer
    }

    /// A part of a page.
    pub async fn fragment(&self, path: &str) -> Answer {
        self.send(self.http.get(format!("{}{path}", self.url))).await
    }

    /// An answer whose body is not read yet.
    pub async fn open(&self, path: &str) -> Response {
        let request = self.http.get(format!("{}{path}", self.url));
        self.with_cookie(request).send().await.unwrap()
    }

    /// The page at a path, which there must be.
    pub async fn page(&self, path: &str) -> Answer {
        self.get(path).await.expect(200)
    }

    pub async fn post(&self, path: &str, fields: &[(String, String)]) -> Answer {
        self.send(self.http.post(format!("{}{path}", self.url)).form(fields)).await
    }

    /// Sends a form with some of its fields filled in.
    pub async fn submit(&self, form: &Form, fields: &[(&str, &str)]) -> Answer {
        self.post(&form.action, &form.filled(fields)).await
    }

    pub async fn sign_in(&self, fields: &[(&str, &str)]) -> Answer {
        let form = self.page("/page/sign-in").await.form("/page/sign-in");
        self.submit(&form, fields).await
    }

    /// A request that this browser has not made by itself.
    pub async fn send(&self, request: RequestBuilder) -> Answer {
        let response = self.with_cookie(request).send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if let Some(set) = headers.get(SET_COOKIE) {
            let pair = set.to_str().unwrap().split(';').next().unwrap().to_owned();
            *self.cookie.lock().unwrap() = Some(pair);
        }
        Answer { status, headers, body: response.text().await.unwrap() }
    }

    fn with_cookie(&self, request: RequestBuilder) -> RequestBuilder {
        match &*self.cookie.lock().unwrap() {
            Some(cookie) => request.header(COOKIE, cookie),
            None => request,
        }
    }

    pub fn request(&self, path: &str) -> RequestBuilder {
        self.http.get(format!("{}{path}", self.url))
    }
}
