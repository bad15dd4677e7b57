//! A real browser: Debian's Chromium, which a test leads by ChromeDriver as a user leads it by hand.

mod chromium;
mod driver;
mod judge;

pub use chromium::{Chromium, Scripts, View};
