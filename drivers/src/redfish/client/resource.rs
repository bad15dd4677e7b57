//! A resource of a BMC, as it was read. What BMCs leave out or write in another way than the schema has it is nothing
//! here, and callers state their need.

use serde_json::Value;

/// A resource.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::redfish) struct Resource {
    path: String,
    etag: Option<String>,
    body: Value,
}

impl Resource {
    pub(in crate::redfish) fn new(path: &str, etag: Option<String>, body: Value) -> Self {
        let of_body = body["@odata.etag"].as_str().map(str::to_owned);
        let etag = [etag, of_body].into_iter().flatten().find(|etag| is_version(etag));
        Self { path: path.to_owned(), etag, body }
    }

    /// Where it is.
    pub(in crate::redfish) fn path(&self) -> &str {
        &self.path
    }

    /// Its version.
    pub(in crate::redfish) fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// What is at a JSON pointer in it.
    pub(in crate::redfish) fn at(&self, pointer: &str) -> &Value {
        self.body.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// Whether there is something at a JSON pointer in it, be it nothing yet.
    pub(in crate::redfish) fn has(&self, pointer: &str) -> bool {
        self.body.pointer(pointer).is_some()
    }

    /// A text; nothing where it is empty.
    pub(in crate::redfish) fn text(&self, pointer: &str) -> Option<&str> {
        self.at(pointer).as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// The path of another resource.
    pub(in crate::redfish) fn link(&self, pointer: &str) -> Option<&str> {
        id(self.at(pointer))
    }

    /// The paths of other resources.
    pub(in crate::redfish) fn links(&self, pointer: &str) -> Vec<&str> {
        self.at(pointer).as_array().into_iter().flatten().filter_map(id).collect()
    }

    /// The words of a list.
    pub(in crate::redfish) fn words(&self, pointer: &str) -> Vec<&str> {
        self.at(pointer).as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Where an action of it is asked for, by its name as `ComputerSystem.Reset`.
    pub(in crate::redfish) fn action(&self, name: &str) -> Option<&str> {
        self.body["Actions"][format!("#{name}")]["target"].as_str()
    }

    /// A maker's own action of it, of those beside the schema's, by its name as `FTSComputerSystem.Screenshot`. Some BMCs put
    /// the address of a schema before the name.
    pub(in crate::redfish) fn oem_action(&self, name: &str) -> Option<&Value> {
        let mut actions = self.body["Actions"]["Oem"].as_object().into_iter().flatten();
        let (_, action) =
            actions.find(|(key, _)| key.rsplit_once('#').is_some_and(|(_, of_it)| of_it == name))?;
        Some(action)
    }

    /// Where a maker's own action of it is asked for, by the end of its name as `VirtualMedia.InsertVirtualMedia`.
    pub(in crate::redfish) fn makers_action(&self, name: &str) -> Option<MakersAction<'_>> {
        HPE.iter().find_map(|(maker, prefix)| {
            let action = &self.body["Oem"][*maker]["Actions"][format!("#{prefix}{name}")];
            Some(MakersAction { maker, target: action["target"].as_str()? })
        })
    }
}

/// Whether an ETag names a version: some BMCs send an empty one.
fn is_version(etag: &str) -> bool {
    !etag.trim().trim_start_matches("W/").trim_matches('"').trim().is_empty()
}

/// The names of HPE's own part of a resource, with those of its actions.
const HPE: &[(&str, &str)] = &[("Hpe", "HpeiLO"), ("Hp", "HpiLO")];

/// An action below `Oem`, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::redfish) struct MakersAction<'a> {
    /// The name of the maker's part of the resource.
    pub(in crate::redfish) maker: &'static str,
    /// Where it is asked for.
    pub(in crate::redfish) target: &'a str,
}

/// The path of a reference.
fn id(reference: &Value) -> Option<&str> {
    reference["@odata.id"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_left_out_or_odd_is_nothing() {
        let body = json!({
            "@odata.etag": "W/\"1\"", "Manufacturer": " Farm ", "Model": "", "Bios": {"@odata.id": "/b"},
            "Members": [{"@odata.id": "/m/1"}, {}, 7, {"@odata.id": "/m/2"}], "Words": ["a", 1, "b"], "Mode": null,
            "Actions": {
                "#ComputerSystem.Reset": {"target": "/reset"},
                "Oem": {"#A.Light": {"target": "/a"}, "http://b/v1/B.v1_0_0#B.Light": {"target": "/b"}, "C.Light": {}},
            },
            "Oem": {"Hp": {"Actions": {"#HpiLOVirtualMedia.Eject": {"target": "/eject"}}}},
        });
        let resource = Resource::new("/s", None, body);
        assert_eq!(resource.etag(), Some("W/\"1\""));
        assert_eq!((resource.text("/Manufacturer"), resource.text("/Model")), (Some("Farm"), None));
        assert!(resource.has("/Mode") && !resource.has("/Oops") && resource.text("/Mode").is_none());
        assert_eq!((resource.link("/Bios"), resource.link("/Oops")), (Some("/b"), None));
        assert_eq!(resource.links("/Members"), ["/m/1", "/m/2"]);
        assert_eq!((resource.words("/Words"), resource.words("/Model")), (vec!["a", "b"], vec![]));
        assert_eq!(resource.action("ComputerSystem.Reset"), Some("/reset"));
        assert_eq!(resource.action("ComputerSystem.Oops"), None);
        let light = |name: &str| resource.oem_action(name).map(|action| action["target"].clone());
        assert_eq!((light("A.Light"), light("B.Light")), (Some(json!("/a")), Some(json!("/b"))));
        assert_eq!((light("C.Light"), light("Light")), (None, None));
        let eject = MakersAction { maker: "Hp", target: "/eject" };
        assert_eq!(resource.makers_action("VirtualMedia.Eject"), Some(eject));
        assert_eq!(resource.makers_action("VirtualMedia.Insert"), None);
        assert_eq!(Resource::new("/s", Some("2".into()), json!([])).etag(), Some("2"));
    }

    #[test]
    fn c23_an_empty_etag_is_none() {
        for empty in ["", " ", "\"\"", "W/\"\""] {
            let of = |body| Resource::new("/s", Some(empty.into()), body).etag().map(str::to_owned);
            assert_eq!(of(json!({"@odata.etag": empty})), None, "{empty}");
            assert_eq!(of(json!({"@odata.etag": "W/\"7\""})).as_deref(), Some("W/\"7\""), "{empty}");
        }
    }
}
