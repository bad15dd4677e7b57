//! The conductor that strangers call: `farrier serve` as a process, and an honest client of it.

use super::measure::{PATIENCE, Subject};
use crate::conductor::farrier::Farrier;
use crate::conductor::node_api::{Api, Conductor};
use crate::machine::free_port;
use anyhow::{Context, Result};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// The conductor, killed when it is dropped.
#[derive(Debug)]
pub struct Victim {
    farrier: Farrier,
    /// Where its ramdisk API listens.
    pub ramdisk: SocketAddr,
}

impl Victim {
    /// Starts one with its state in `folder`, with further options of `farrier serve`.
    ///
    /// # Errors
    ///
    /// It did not start.
    pub fn start(program: &Path, folder: &Path, options: &[&str]) -> Result<Self> {
        let ramdisk = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        Self::start_at(ramdisk, program, folder, options)
    }

    /// The same, whose ramdisk API listens at an address.
    ///
    /// # Errors
    ///
    /// It did not start.
    pub fn start_at(ramdisk: SocketAddr, program: &Path, folder: &Path, options: &[&str]) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let farrier = Farrier::start_at(ramdisk, program, folder, options)?;
        Ok(Self { farrier, ramdisk })
    }

    /// Its API of operators, with all rights.
    pub fn operators(&self) -> &Api {
        self.farrier.api()
    }

    /// Where its API of operators listens.
    pub fn operators_address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.operators().port()))
    }

    /// The token of an administrator.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn token(&self) -> Result<String> {
        self.farrier.token()
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        self.farrier.log_tail()
    }

    /// Its process.
    pub fn process_id(&self) -> u32 {
        self.farrier.process_id()
    }

    /// It, and an honest client that asks the ramdisk API for its versions.
    pub fn subject(&self) -> Subject {
        let address = self.ramdisk;
        let ask = move || request(address, "GET", "/v1", "").is_ok_and(|answer| answer.starts_with("200"));
        Subject { process: "conductor", id: self.process_id(), ask: Arc::new(ask) }
    }
}

/// Status and beginning of the answer to a request, in one line.
///
/// # Errors
///
/// Nobody listens, or the connection ended before an answer.
pub fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> Result<String> {
    request_as("", address, method, path, body)
}

/// The same of whoever shows a token, unless that is empty.
///
/// # Errors
///
/// As [`request`].
pub fn request_as(token: &str, address: SocketAddr, method: &str, path: &str, body: &str) -> Result<String> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let token = if token.is_empty() { String::new() } else { format!("X-Auth-Token: {token}\r\n") };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         X-OpenStack-Ironic-API-Version: 1.84\r\n{token}Content-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes())?;
    // A refusal may come before the body has gone out.
    connection.write_all(body.as_bytes()).ok();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).ok();
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").context("no answer")?;
    let status = head.split(' ').nth(1).context("no status")?;
    Ok(format!("{status} {}", body.chars().take(4000).collect::<String>()).trim().to_owned())
}
