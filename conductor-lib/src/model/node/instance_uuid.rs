//! The identity of an instance, which is set or removed and never replaced (section 1.7).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The identity that a user gave the instance of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceUuid(Option<Uuid>);

/// The node belongs to another instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the node already has instance {0}; undeploy the node before assigning another instance")]
pub struct OtherInstance(Uuid);

impl InstanceUuid {
    /// The identity, where there is one.
    pub fn get(self) -> Option<Uuid> {
        self.0
    }

    /// Sets it. To set what is there is no change, and no error.
    ///
    /// # Errors
    ///
    /// [`OtherInstance`].
    pub fn set(&mut self, uuid: Uuid) -> Result<(), OtherInstance> {
        match self.0 {
            Some(other) if other != uuid => Err(OtherInstance(other)),
            _ => {
                self.0 = Some(uuid);
                Ok(())
            }
        }
    }

    /// Removes it.
    pub fn remove(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_set_or_removed_and_never_replaced() {
        let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
        let mut instance = InstanceUuid::default();
        instance.set(one).unwrap();
        instance.set(one).unwrap();
        let error = instance.set(other).unwrap_err().to_string();
        assert!(error.contains(&one.to_string()), "{error}");
        assert_eq!(instance.get(), Some(one));
        instance.remove();
        instance.set(other).unwrap();
        assert_eq!(serde_json::to_value(instance).unwrap(), other.to_string());
    }
}
