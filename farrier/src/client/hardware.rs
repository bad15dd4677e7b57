//! What is asked of the BMC of a machine.

use crate::client::NodeApi;
use farrier_conductor::interfaces::IndicatorState;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

/// The answer about what has lights.
#[derive(Debug, Deserialize)]
pub(crate) struct Components {
    /// Each of them.
    pub(crate) components: Vec<Component>,
}

/// What has lights.
#[derive(Debug, Deserialize)]
pub(crate) struct Component {
    /// Its name.
    pub(crate) name: String,
}

/// The answer about lights.
#[derive(Debug, Deserialize)]
pub(crate) struct Indicators {
    /// Each of them.
    pub(crate) indicators: Vec<Indicator>,
}

/// A light.
#[derive(Debug, Deserialize)]
pub(crate) struct Indicator {
    /// What has it.
    pub(crate) component: String,
    /// Its name there.
    pub(crate) name: String,
    /// The states that it supports.
    pub(crate) states: Vec<IndicatorState>,
}

impl NodeApi {
    /// The names of what has lights.
    pub(crate) async fn indicator_components(&self, node: &str) -> anyhow::Result<Vec<String>> {
        let path = ["nodes", node, "management", "indicators"];
        let answer: Components = self.read(Method::GET, &path, None::<&()>).await?;
        Ok(answer.components.into_iter().map(|Component { name }| name).collect())
    }

    /// The lights of one of these.
    pub(crate) async fn indicators(&self, node: &str, component: &str) -> anyhow::Result<Vec<Indicator>> {
        let path = ["nodes", node, "management", "indicators", component];
        let answer: Indicators = self.read(Method::GET, &path, None::<&()>).await?;
        Ok(answer.indicators)
    }

    /// Has a light do something.
    pub(crate) async fn set_indicator(
        &self,
        node: &str,
        Indicator { component, name, .. }: &Indicator,
        state: IndicatorState,
    ) -> anyhow::Result<()> {
        let path = ["nodes", node, "management", "indicators", component, name];
        self.send(Method::PUT, &path, Some(&json!({"state": state}))).await.map(drop)
    }

    /// The versions of firmware.
    pub(crate) async fn firmware(&self, node: &str) -> anyhow::Result<Value> {
        self.read(Method::GET, &["nodes", node, "firmware"], None::<&()>).await
    }
}
