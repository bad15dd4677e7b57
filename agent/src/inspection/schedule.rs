//! When a machine is inspected: once its devices are there, and again with the card by which it is known, should
//! that one be late.

use super::callback::{Callback, CallbackError};
use super::{callback_urls, collector_names, data_of};
use crate::agent::Agent;
use crate::network::{http, wait};
use reqwest::StatusCode;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// The time for which the data is offered to an unavailable conductor before the lookup starts without it: as long as a
/// lookup takes by default.
const PATIENCE: Duration = Duration::from_secs(600);

/// The inspection did not do all it should.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    /// A collector failed; the conductor has the data.
    #[error("{0}")]
    Collection(String),
    /// The conductor does not have the data.
    #[error(transparent)]
    Callback(#[from] CallbackError),
}

/// The inspection of a boot.
pub struct Inspection {
    agent: Arc<Agent>,
    /// The cards with which the conductor did not know the machine when it was asked last.
    unknown: Mutex<Option<Vec<String>>>,
}

impl Inspection {
    /// The inspection of this agent's machine, which has not begun.
    pub fn of(agent: &Arc<Agent>) -> Self {
        Self { agent: Arc::clone(agent), unknown: Mutex::default() }
    }

    /// Inspects the machine if that is wanted, and returns the node it belongs to, as far as the conductor
    /// names it.
    ///
    /// # Errors
    ///
    /// [`InspectionError`], which is logged already. The node can still be found by its addresses.
    pub async fn run(&self) -> Result<Option<Uuid>, InspectionError> {
        let urls = callback_urls(&self.agent.options);
        if urls.is_empty() {
            return Ok(None);
        }
        let waiting = Arc::clone(&self.agent);
        let waited = tokio::task::spawn_blocking(move || drop(waiting.wait_for_devices()));
        waited.await.inspect_err(|error| tracing::error!("devices are not waited for: {error}")).ok();
        self.inspect_with(wait::hardware_addresses(), urls).await
    }

    /// Inspects the machine again if the conductor did not know it, and one of these cards was not there then.
    /// Returns the node as [`Inspection::run`] does.
    pub async fn meet(&self, cards: Vec<String>) -> Option<Uuid> {
        let unknown = self.unknown()?;
        if cards.iter().all(|card| unknown.contains(card)) {
            return None;
        }
        tracing::info!("a further network card appeared; the conductor may know this machine by it");
        // A failure is logged already.
        self.inspect_with(cards, callback_urls(&self.agent.options)).await.ok().flatten()
    }

    /// Inspects the machine again with each further card, until the conductor knows it.
    pub async fn follow_cards(self) {
        while let Some(unknown) = self.unknown() {
            wait::rest(Duration::MAX, &unknown).await;
            self.meet(wait::hardware_addresses()).await;
        }
    }

    async fn inspect_with(
        &self,
        cards: Vec<String>,
        urls: Vec<String>,
    ) -> Result<Option<Uuid>, InspectionError> {
        let outcome = inspect(&self.agent, urls).await;
        let outcome = outcome.inspect_err(|error| tracing::error!("the inspection failed: {error}"));
        let is_unknown = matches!(
            outcome,
            Err(InspectionError::Callback(CallbackError::Refused { status: StatusCode::NOT_FOUND, .. }))
        );
        *self.unknown.lock().unwrap_or_else(PoisonError::into_inner) = is_unknown.then_some(cards);
        outcome
    }

    fn unknown(&self) -> Option<Vec<String>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Collects the data and posts it to the conductor.
pub(super) async fn inspect(agent: &Arc<Agent>, urls: Vec<String>) -> Result<Option<Uuid>, InspectionError> {
    let (data, error) = data_of(agent, &collector_names(&agent.options)).await;
    let headers = http::api_headers(&agent.options);
    // Without a conductor there is nothing else to be done.
    let patience = if agent.conductor.is_some() { PATIENCE } else { Duration::MAX };
    let callback = Callback::new(agent.http.clone(), headers, urls, patience);
    let node = callback.post(&Value::Object(data)).await?;
    match error {
        Some(error) => Err(InspectionError::Collection(error)),
        None => Ok(node),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{callback, tests};
    use super::*;

    #[tokio::test]
    async fn x10_a_machine_that_is_not_known_is_inspected_again_with_each_further_card() {
        let (url, script) = callback::tests::conductor(&[404, 404, 202]).await;
        let line = format!("ipa-inspection-callback-url={url} ipa-inspection-collectors=pci-devices");
        let inspection = Inspection::of(&tests::agent(tests::options(&line)));
        assert_eq!(inspection.meet(vec!["before the first".to_owned()]).await, None);
        let first = inspection.run().await.unwrap_err();
        assert!(first.to_string().contains("404"), "{first}");
        let mut cards = wait::hardware_addresses();
        let node = Some(callback::tests::NODE.parse().unwrap());
        for (further, expected, requests) in [
            (None, None, 1),
            (Some("b"), None, 2),
            (None, None, 2),
            (Some("c"), node, 3),
            (Some("d"), None, 3),
        ] {
            cards.extend(further.map(str::to_owned));
            assert_eq!(inspection.meet(cards.clone()).await, expected, "{further:?}");
            assert_eq!(script.lock().unwrap().1.len(), requests, "{further:?}");
        }
    }

    #[tokio::test]
    async fn x10_data_that_is_refused_for_another_reason_is_not_sent_again() {
        let (url, script) = callback::tests::conductor(&[400]).await;
        let line = format!("ipa-inspection-callback-url={url} ipa-inspection-collectors=pci-devices");
        let inspection = Inspection::of(&tests::agent(tests::options(&line)));
        assert!(inspection.run().await.is_err());
        assert_eq!(inspection.meet(vec!["another".to_owned()]).await, None);
        assert_eq!(script.lock().unwrap().1.len(), 1);
    }
}
