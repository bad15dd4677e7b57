//! Plain resources.

use crate::records::{Resource, ResourceKind};
use crate::store::conformance::{terms, with_node};
use crate::store::{ResourceSelection, Store, StoreError};
use serde_json::{Value, json};
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;

fn resource(kind: ResourceKind, name: Option<&str>, node: Option<Uuid>, fields: &Value) -> Resource {
    Resource {
        uuid: Uuid::new_v4(),
        kind,
        name: name.map(str::to_owned),
        node_uuid: node,
        created_at: OffsetDateTime::UNIX_EPOCH,
        updated_at: None,
        fields: fields.as_object().unwrap().clone(),
    }
}

pub(super) async fn a_resource_is_written_as_it_was_before_or_not_at_all(store: Arc<dyn Store>) {
    let before = resource(ResourceKind::Runbook, Some("CUSTOM_A"), None, &json!({"steps": []}));
    store.create_resource(&before).await.unwrap();
    for id in [before.uuid.to_string().as_str(), "CUSTOM_A"] {
        assert_eq!(store.resource(ResourceKind::Runbook, id).await.unwrap().as_ref(), Some(&before));
        assert_eq!(store.resource(ResourceKind::DeployTemplate, id).await.unwrap(), None);
    }
    let after = Resource { name: Some("CUSTOM_B".into()), ..before.clone() };
    assert!(store.write_resource(&before, &after).await.unwrap());
    assert!(!store.write_resource(&before, &after).await.unwrap());
    let others = resource(ResourceKind::DeployTemplate, Some("CUSTOM_B"), None, &json!({}));
    store.create_resource(&others).await.unwrap();
    let again = resource(ResourceKind::Runbook, Some("CUSTOM_B"), None, &json!({}));
    let error = store.create_resource(&again).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Taken { what } if what == "a runbook with the name \"CUSTOM_B\""),
        "{error}"
    );
    store.delete_resource(after.uuid).await.unwrap();
    assert!(!store.write_resource(&after, &before).await.unwrap());
}

pub(super) async fn what_belongs_to_a_node_is_found_by_it_and_goes_with_it(store: Arc<dyn Store>) {
    let node = with_node(&*store).await;
    let group =
        |address| resource(ResourceKind::PortGroup, None, Some(node.uuid), &json!({"address": address}));
    store.create_resource(&group("a")).await.unwrap();
    store.create_resource(&group("b")).await.unwrap();
    assert!(matches!(store.create_resource(&group("b")).await, Err(StoreError::Taken { .. })));
    let all = ResourceSelection::first(ResourceKind::PortGroup, 9);
    for (selection, count) in [
        (ResourceSelection { node: Some(node.uuid), ..all.clone() }, 2),
        (ResourceSelection { node: Some(Uuid::nil()), ..all.clone() }, 0),
        (ResourceSelection { natural_key: Some("a".into()), ..all.clone() }, 1),
        (ResourceSelection { limit: 1, ..all.clone() }, 1),
    ] {
        assert_eq!(store.resources(&selection).await.unwrap().len(), count, "{selection:?}");
    }
    let (lease, _) = store.take(node.uuid, &terms("one", 0)).await.unwrap();
    store.delete(&lease).await.unwrap();
    assert!(store.resources(&all).await.unwrap().is_empty());
}
