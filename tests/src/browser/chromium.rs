//! A window of Chromium, and what a user does in it.

use super::driver::ChromeDriver;
use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fantoccini::elements::Element;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use url::{ParseError, Url};

/// Longest wait for something that a user sees.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at a page.
const PAUSE: Duration = Duration::from_millis(50);

/// Nothing of it reaches a service of its maker, and nothing needs a screen or the rights of another user.
const FLAGS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    // Pictures have no bars.
    "--hide-scrollbars",
];

/// Whether pages run scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scripts {
    /// They do.
    Run,
    /// The user has forbidden them.
    Forbidden,
}

/// How a user looks at pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Width of the window, in pixels of CSS.
    pub width: u32,
    /// Whether the user prefers dark pages.
    pub is_dark: bool,
}

impl View {
    /// A desk and a phone, each light and dark.
    pub const ALL: [Self; 4] = [
        Self { width: 1280, is_dark: false },
        Self { width: 1280, is_dark: true },
        Self { width: 390, is_dark: false },
        Self { width: 390, is_dark: true },
    ];

    /// A short name, for files and messages.
    #[must_use]
    pub fn name(self) -> String {
        format!("{}-{}", self.width, if self.is_dark { "dark" } else { "light" })
    }
}

/// A browser with one window. Dropping it ends it.
#[derive(Debug)]
pub struct Chromium {
    client: Client,
    _driver: ChromeDriver,
    _profile: TempDir,
}

/// A command of the protocol of Chromium's own tools.
#[derive(Debug)]
struct ToolCommand(Value);

impl WebDriverCompatibleCommand for ToolCommand {
    fn endpoint(&self, driver: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        driver.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.0.to_string()))
    }
}

impl Chromium {
    /// Starts one, which knows no site and no user.
    ///
    /// # Errors
    ///
    /// Chromium or ChromeDriver do not start.
    pub async fn start(scripts: Scripts) -> Result<Self> {
        let (driver, profile) = (ChromeDriver::start()?, TempDir::new()?);
        let profile_flag = format!("--user-data-dir={}", profile.path().display());
        let flags: Vec<_> = FLAGS.into_iter().chain([profile_flag.as_str()]).collect();
        // 2 is "block" among the settings of content.
        let preferences = match scripts {
            Scripts::Run => json!({}),
            Scripts::Forbidden => json!({"profile.managed_default_content_settings.javascript": 2}),
        };
        let options = json!({"args": flags, "prefs": preferences});
        let capabilities = json!({"acceptInsecureCerts": true, "goog:chromeOptions": options});
        let Value::Object(capabilities) = capabilities else { bail!("capabilities are an object") };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&driver.url)
            .await
            .context("ChromeDriver starts no Chromium")?;
        let browser = Self { client, _driver: driver, _profile: profile };
        browser.view(View::ALL[0]).await?;
        Ok(browser)
    }

    /// Shows pages as to this user from now on.
    ///
    /// # Errors
    ///
    /// The browser is gone.
    pub async fn view(&self, View { width, is_dark }: View) -> Result<()> {
        let height = if width < 600 { 844 } else { 800 };
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.tool("Emulation.setDeviceMetricsOverride", metrics).await?;
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.tool("Emulation.setEmulatedMedia", features).await.map(drop)
    }

    /// Goes to an address, and waits until its page is loaded.
    ///
    /// # Errors
    ///
    /// Nothing answers there.
    pub async fn go(&self, address: &str) -> Result<()> {
        self.client.goto(address).await.with_context(|| format!("cannot open {address}"))
    }

    /// The address of the page.
    ///
    /// # Errors
    ///
    /// The browser is gone.
    pub async fn address(&self) -> Result<String> {
        Ok(self.client.current_url().await?.into())
    }

    /// The text that the page shows.
    ///
    /// # Errors
    ///
    /// The page has no body.
    pub async fn text(&self) -> Result<String> {
        self.text_of("body").await
    }

    /// The text that an element shows.
    ///
    /// # Errors
    ///
    /// There is no such element.
    pub async fn text_of(&self, selector: &str) -> Result<String> {
        Ok(self.element(selector).await?.text().await?)
    }

    /// Follows the first link with this text.
    ///
    /// # Errors
    ///
    /// There is no such link.
    pub async fn follow(&self, link: &str) -> Result<()> {
        let found = self.client.find(Locator::LinkText(link)).await;
        let found = found.with_context(|| format!("no link {link:?}"))?;
        Ok(found.click().await?)
    }

    /// Clicks on the first element that a selector of CSS chooses.
    ///
    /// # Errors
    ///
    /// There is none, or a user could not click on it.
    pub async fn click(&self, selector: &str) -> Result<()> {
        let element = self.element(selector).await?;
        element.click().await.with_context(|| format!("cannot click on {selector}"))
    }

    /// Types a text into a field.
    ///
    /// # Errors
    ///
    /// There is none.
    pub async fn fill(&self, selector: &str, text: &str) -> Result<()> {
        let field = self.element(selector).await?;
        field.send_keys(text).await.with_context(|| format!("cannot type into {selector}"))
    }

    /// Whether there is an element that a selector of CSS chooses.
    ///
    /// # Errors
    ///
    /// The browser is gone.
    pub async fn has(&self, selector: &str) -> Result<bool> {
        Ok(!self.client.find_all(Locator::Css(selector)).await?.is_empty())
    }

    /// The value of an attribute of an element.
    ///
    /// # Errors
    ///
    /// There is no such element.
    pub async fn attribute(&self, selector: &str, name: &str) -> Result<Option<String>> {
        Ok(self.element(selector).await?.attr(name).await?)
    }

    /// Waits until an element shows a text.
    ///
    /// # Errors
    ///
    /// It does not for a minute; the error has what the page shows.
    pub async fn wait_for(&self, selector: &str, text: &str) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        // A part that is replaced at this moment is gone for it.
        while !self.text_of(selector).await.is_ok_and(|shown| shown.contains(text)) {
            if Instant::now() > end {
                bail!("waited for {text:?} in {selector}: {}", self.text().await?);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Runs a script in the page, and gives what it returns.
    ///
    /// # Errors
    ///
    /// The script fails.
    pub async fn run(&self, script: &str) -> Result<Value> {
        Ok(self.client.execute(script, Vec::new()).await?)
    }

    /// Runs a script in the page that ends with a call of its last argument, and gives what it is called with.
    ///
    /// # Errors
    ///
    /// The script fails.
    pub async fn run_until_called(&self, script: &str) -> Result<Value> {
        Ok(self.client.execute_async(script, Vec::new()).await?)
    }

    /// A picture of what the window shows, as WebP.
    ///
    /// # Errors
    ///
    /// The browser is gone.
    pub async fn picture(&self) -> Result<Vec<u8>> {
        let taken = self.tool("Page.captureScreenshot", json!({"format": "webp", "quality": 85})).await?;
        let data = taken["data"].as_str().context("Chromium made no picture")?;
        Ok(STANDARD.decode(data)?)
    }

    /// Has Chromium's own tools do something.
    ///
    /// # Errors
    ///
    /// They do not know that.
    pub async fn tool(&self, name: &str, parameters: Value) -> Result<Value> {
        let command = ToolCommand(json!({"cmd": name, "params": parameters}));
        self.client.issue_cmd(command).await.with_context(|| format!("{name} failed"))
    }

    async fn element(&self, selector: &str) -> Result<Element> {
        let found = self.client.find(Locator::Css(selector)).await;
        found.with_context(|| format!("the page has no {selector}"))
    }
}
