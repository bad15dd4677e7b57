//! What a parameter of an action may be, as a BMC says.

use super::bmc::Bmc;
use super::error::RedfishError;
use serde_json::Value;

/// The end of the name of the list beside an action.
pub(in crate::redfish) const LIST: &str = "@Redfish.AllowableValues";

impl Bmc {
    /// The allowable values of a parameter of an action; nothing if the BMC lists none. Where the list beside the action has none of those
    /// that are wanted, that of its `ActionInfo` is read too: either may be missing, and some lists have two values in
    /// one word.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(in crate::redfish) async fn allowable(
        &self,
        action: &Value,
        parameter: &str,
        wanted: &[&str],
    ) -> Result<Vec<String>, RedfishError> {
        let mut allowable = words(&action[format!("{parameter}{LIST}")]);
        let info = action["@Redfish.ActionInfo"].as_str();
        let is_listed = allowable.iter().any(|one| wanted.contains(&one.as_str()));
        let Some(path) = info.filter(|_| !is_listed) else { return Ok(allowable) };
        let info = self.get(path).await?;
        let parameters = info.at("/Parameters").as_array().into_iter().flatten();
        let of_name = parameters.filter(|known| known["Name"] == parameter);
        allowable.extend(of_name.flat_map(|known| words(&known["AllowableValues"])));
        Ok(allowable)
    }
}

fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.map(str::to_owned).collect()
}
