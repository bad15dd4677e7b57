//! A line between a browser and a conductor, which can be cut, or lead to another one.

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The line. It ends with the runtime.
pub struct Line {
    /// Where a browser finds the conductor.
    pub url: String,
    /// The address of the conductor; none while the line is cut.
    end: watch::Sender<Option<String>>,
}

impl Line {
    /// A line to the conductor at this address.
    pub async fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let line = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            end: watch::Sender::new(Some(host(url))),
        };
        let ends = line.end.subscribe();
        tokio::spawn(async move {
            loop {
                let (mut browser, _) = listener.accept().await.unwrap();
                let mut ends = ends.clone();
                tokio::spawn(async move {
                    let end = ends.borrow_and_update().clone();
                    let Some(end) = end else { return };
                    let mut conductor = TcpStream::connect(end).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut browser, &mut conductor) => {}
                        _ = ends.changed() => {}
                    }
                });
            }
        });
        line
    }

    /// Ends all connections, and refuses others.
    pub fn cut(&self) {
        self.end.send_replace(None);
    }

    /// Leads new connections to the conductor at this address.
    pub fn lead_to(&self, url: &str) {
        self.end.send_replace(Some(host(url)));
    }
}

fn host(url: &str) -> String {
    url.trim_start_matches("http://").to_owned()
}
