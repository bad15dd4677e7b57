//! A line to a server of this machine that is cut once, in the middle of what is sent to it.

use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What becomes of the line that is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Nothing passes for so long, on new connections neither, and nobody is told.
    Silence(Duration),
    /// Both sides of the connection are told that it has ended. The next one is served.
    End,
}

/// When the line is silent no more.
#[derive(Debug, Clone, Default)]
struct Quiet(Arc<Mutex<Option<Instant>>>);

impl Quiet {
    fn begin(&self, length: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + length);
    }

    fn wait(&self) {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        thread::sleep(until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now())));
    }
}

/// The line. It ends with the process.
#[derive(Debug)]
pub struct CutLine {
    port: u16,
    sent: Arc<AtomicU64>,
}

impl CutLine {
    /// A line to the port `server` of the loopback address that is cut when so many bytes were sent to the server.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub fn new(server: u16, after: u64, cut: Cut) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
        let (port, sent) = (listener.local_addr()?.port(), Arc::new(AtomicU64::new(0)));
        let (counted, quiet) = (Arc::clone(&sent), Quiet::default());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                quiet.wait();
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { continue };
                let (Ok(back), Ok(forth)) = (server.try_clone(), client.try_clone()) else { continue };
                let (counted, forth_quiet, back_quiet) = (Arc::clone(&counted), quiet.clone(), quiet.clone());
                thread::spawn(move || {
                    pass(&client, &server, &forth_quiet, |bytes| {
                        let before = counted.fetch_add(bytes, Ordering::Relaxed);
                        (before < after && before + bytes >= after).then_some(cut)
                    })
                });
                thread::spawn(move || pass(&back, &forth, &back_quiet, |_| None));
            }
        });
        Ok(Self { port, sent })
    }

    /// Its own port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Bytes sent to the server.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

/// Passes on what comes, until either side ends or it is cut.
fn pass(mut from: &TcpStream, mut to: &TcpStream, quiet: &Quiet, cut: impl Fn(u64) -> Option<Cut>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        match cut(count as u64) {
            Some(Cut::Silence(length)) => quiet.begin(length),
            Some(Cut::End) => break,
            None => {}
        }
        quiet.wait();
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Whoever has ended already needs not to be told.
    from.shutdown(Shutdown::Both).ok();
    to.shutdown(Shutdown::Both).ok();
}
