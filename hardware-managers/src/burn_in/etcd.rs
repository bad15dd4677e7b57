//! etcd by its JSON gateway (etcd 3.4 and later, paths below `/v3`): keys and values are base64.

use super::BurnInError;
use crate::manager::StepHost;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// An etcd server.
pub struct Etcd<'a> {
    host: &'a dyn StepHost,
    /// Its URL, without a slash at the end.
    url: String,
}

/// A lease: what was put under it goes when it is not kept alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease(String);

impl<'a> Etcd<'a> {
    /// A server that is spoken with by the agent's HTTP client.
    pub fn new(host: &'a dyn StepHost, url: String) -> Self {
        Self { host, url }
    }

    /// A new lease that lasts for some seconds.
    ///
    /// # Errors
    ///
    /// [`BurnInError::Unprepared`] when the server does not answer, as everywhere below.
    pub fn lease(&self, seconds: u64) -> Result<Lease, BurnInError> {
        let answer = self.post("lease/grant", &json!({"TTL": seconds, "ID": 0}))?;
        answer["ID"].as_str().map(|id| Lease(id.to_owned())).ok_or_else(|| self.garbage(&answer))
    }

    /// Has a lease last for its time from now on; false when it has run out.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn keep_alive(&self, lease: &Lease) -> Result<bool, BurnInError> {
        let answer = self.post("lease/keepalive", &json!({"ID": lease.0}))?;
        Ok(answer["result"]["TTL"].as_str().is_some_and(|left| left != "0"))
    }

    /// Ends a lease, and all that was put under it.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn revoke(&self, lease: &Lease) -> Result<(), BurnInError> {
        self.post("lease/revoke", &json!({"ID": lease.0})).map(drop)
    }

    /// Puts a key under a lease, for good or as long as it lasts; false when another machine has it. One whose
    /// answer was lost is still this lease's own.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn create(&self, key: &str, value: &[u8], lease: Option<&Lease>) -> Result<bool, BurnInError> {
        let mut put = json!({"key": encode(key), "value": STANDARD.encode(value)});
        if let Some(lease) = lease {
            put["lease"] = json!(lease.0);
        }
        let absent =
            json!({"key": encode(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0"});
        let look = json!({"request_range": {"key": encode(key), "keys_only": true}});
        let answer = self.transact(&absent, &json!({"request_put": put}), &[look])?;
        let found = &answer["responses"][0]["response_range"]["kvs"][0]["lease"];
        Ok(answer["succeeded"] == true || lease.is_some_and(|lease| *found == lease.0))
    }

    /// Takes a key away, whether it is there or not.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn delete(&self, key: &str) -> Result<(), BurnInError> {
        self.post("kv/deleterange", &json!({"key": encode(key)})).map(drop)
    }

    /// Deletes a key, if it is under this lease. Another machine may have put it since.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn release(&self, key: &str, lease: &Lease) -> Result<(), BurnInError> {
        let own = json!({"key": encode(key), "target": "LEASE", "result": "EQUAL", "lease": lease.0});
        let delete = json!({"request_delete_range": {"key": encode(key)}});
        self.transact(&own, &delete, &[]).map(drop)
    }

    /// What follows `prefix` in the keys that begin with it, where anything does.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn below(&self, prefix: &str) -> Result<Vec<String>, BurnInError> {
        // The key after all of those: the prefix with its last byte counted up, which is never 255 in UTF-8.
        let mut end = prefix.as_bytes().to_vec();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let range = json!({"key": encode(prefix), "range_end": STANDARD.encode(end), "keys_only": true});
        let answer = self.post("kv/range", &range)?;
        let pairs = answer["kvs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let name = |pair: &Value| {
            let key = String::from_utf8(STANDARD.decode(pair["key"].as_str()?).ok()?).ok()?;
            Some(key.strip_prefix(prefix)?.to_owned())
        };
        let names: Option<Vec<_>> = pairs.iter().map(name).collect();
        let names = names.ok_or_else(|| self.garbage(&answer))?;
        Ok(names.into_iter().filter(|name| !name.is_empty()).collect())
    }

    /// Does one thing if a comparison holds, else others. What is false is left out of the answer.
    fn transact(&self, compare: &Value, then: &Value, otherwise: &[Value]) -> Result<Value, BurnInError> {
        self.post("kv/txn", &json!({"compare": [compare], "success": [then], "failure": otherwise}))
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, BurnInError> {
        let url = format!("{}/v3/{path}", self.url);
        self.host.post_json(&url, body).map_err(|error| BurnInError::Unprepared(error.details))
    }

    fn garbage(&self, answer: &Value) -> BurnInError {
        self.failed(&format!("it answered {answer}, which is not etcd's: correct the address"))
    }

    fn failed(&self, reason: &str) -> BurnInError {
        BurnInError::Unprepared(format!("the pairing backend {}: {reason}", self.url))
    }
}

fn encode(text: &str) -> String {
    STANDARD.encode(text)
}
