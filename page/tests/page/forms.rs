//! The forms in a page, and their fields.

use crate::markup::{attribute, elements};

/// A form.
#[derive(Debug, Clone)]
pub struct Form {
    pub action: String,
    pub is_post: bool,
    /// Names with the values that they have from the beginning.
    pub fields: Vec<(String, String)>,
}

impl Form {
    /// Its fields, some of which have other values.
    pub fn filled(&self, fields: &[(&str, &str)]) -> Vec<(String, String)> {
        for (name, _) in fields {
            assert!(self.fields.iter().any(|(field, _)| field == name), "{name} is no field of {self:?}");
        }
        let value = |name: &str| {
            fields.iter().find(|(field, _)| *field == name).map(|(_, value)| (*value).to_owned())
        };
        self.fields
            .iter()
            .map(|(name, old)| (name.clone(), value(name).unwrap_or_else(|| old.clone())))
            .collect()
    }

    /// Its fields without one of them.
    pub fn without(&self, name: &str) -> Vec<(String, String)> {
        self.fields.iter().filter(|(field, _)| field != name).cloned().collect()
    }
}

/// All forms of a page.
pub fn forms(html: &str) -> Vec<Form> {
    let parts = html.split("<form").skip(1).map(|rest| rest.split("</form>").next().unwrap());
    parts
        .map(|part| {
            let (head, content) = part.split_once('>').unwrap();
            let mut fields = Vec::new();
            for input in elements(content, "input") {
                let value = attribute(input, "value").unwrap_or_default();
                fields.extend(attribute(input, "name").map(|name| (name, value)));
            }
            for select in content.split("<select").skip(1) {
                let name = attribute(select.split('>').next().unwrap(), "name").unwrap();
                let options = elements(select.split("</select>").next().unwrap(), "option");
                let first = options.first().and_then(|option| attribute(option, "value")).unwrap_or_default();
                fields.push((name, first));
            }
            Form {
                action: attribute(head, "action").unwrap(),
                is_post: attribute(head, "method").as_deref() == Some("post"),
                fields,
            }
        })
        .collect()
}
