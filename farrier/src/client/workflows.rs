//! Deploy templates and runbooks: steps by name.

use crate::client::{NodeApi, answer};
use crate::failure::{UNREADABLE_RESPONSE, WithCode};
use anyhow::Context;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Which of both, as its path says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workflows {
    /// For deployments.
    Templates,
    /// For cleaning and service.
    Runbooks,
}

impl Workflows {
    fn path(self) -> &'static str {
        match self {
            Self::Templates => "deploy_templates",
            Self::Runbooks => "runbooks",
        }
    }
}

/// Steps by name, as the REST interface shows them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Workflow {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) steps: Vec<Value>,
}

impl NodeApi {
    /// All of a kind.
    pub(crate) async fn workflows(&self, kind: Workflows) -> anyhow::Result<Vec<Workflow>> {
        let mut url = self.path(&[kind.path()])?;
        url.set_query(Some("detail=true"));
        let body = self.send_to(Method::GET, url, None::<&()>).await?;
        let mut list: Value = answer::read(&body)?;
        serde_json::from_value(list[kind.path()].take())
            .with_context(|| format!("the conductor's response has no {}", kind.path()))
            .code(UNREADABLE_RESPONSE)
    }

    /// The one with this name or UUID.
    pub(crate) async fn workflow(&self, kind: Workflows, id: &str) -> anyhow::Result<Workflow> {
        self.read(Method::GET, &[kind.path(), id], None::<&()>).await
    }

    /// Writes steps down under a name.
    pub(crate) async fn create_workflow(
        &self,
        kind: Workflows,
        name: &str,
        steps: &[Value],
    ) -> anyhow::Result<Workflow> {
        let fields = json!({"name": name, "steps": steps});
        self.read(Method::POST, &[kind.path()], Some(&fields)).await
    }

    /// Forgets the one with this name or UUID.
    pub(crate) async fn delete_workflow(&self, kind: Workflows, id: &str) -> anyhow::Result<()> {
        self.send(Method::DELETE, &[kind.path(), id], None::<&()>).await.map(drop)
    }
}
