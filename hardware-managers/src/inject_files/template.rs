//! Fields of the node in URLs, as Python's `str.format` writes them: `{node[uuid]}`, `{ports[0][address]}`.

use serde_json::Value;

/// What fields may name.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    /// The node's record.
    pub node: &'a Value,
    /// Its ports.
    pub ports: &'a Value,
}

impl Fields<'_> {
    /// The text with every field replaced by what it names. `{{` and `}}` stand for braces.
    ///
    /// # Errors
    ///
    /// A field that is not closed, names nothing, or names something that is no text or number. The text itself,
    /// which may hold a password, is not shown.
    pub fn expand(&self, text: &str) -> Result<String, String> {
        let (mut expanded, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            expanded.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(doubled) = rest.strip_prefix(brace) {
                expanded.push_str(brace);
                rest = doubled;
                continue;
            }
            let field = if brace == "{" { rest.split_once('}') } else { None };
            let (field, after) = field.ok_or_else(|| format!("the brace {brace} stands alone"))?;
            expanded.push_str(&self.value(field).ok_or_else(|| {
                format!("{{{field}}} is no text or number: use fields such as {{node[uuid]}}")
            })?);
            rest = after;
        }
        Ok(expanded + rest)
    }

    fn value(&self, field: &str) -> Option<String> {
        let (name, mut indexes) = match field.split_once('[') {
            Some((name, indexes)) => (name, indexes.strip_suffix(']')?.split("][")),
            None => return None,
        };
        let start = match name {
            "node" => self.node,
            "ports" => self.ports,
            _ => return None,
        };
        let found = indexes.try_fold(start, |value, index| match value {
            Value::Array(list) => list.get(index.parse::<usize>().ok()?),
            other => other.get(index),
        })?;
        match found {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_replaced_and_what_names_nothing_is_refused() {
        let node = json!({"uuid": "u-1", "extra": {"rack": 7}, "name": null});
        let ports = json!([{"address": "52:54:00:00:00:01"}]);
        let fields = Fields { node: &node, ports: &ports };
        for (text, expected) in [
            ("http://h/x", Some("http://h/x")),
            ("http://h/{node[uuid]}.key", Some("http://h/u-1.key")),
            ("{ports[0][address]}/{node[extra][rack]}", Some("52:54:00:00:00:01/7")),
            ("{{node}}", Some("{node}")),
            ("{node[name]}", None),
            ("{node[extra]}", None),
            ("{node[nothing]}", None),
            ("{ports[1][address]}", None),
            ("{ports[x]}", None),
            ("{node}", None),
            ("{agent[token]}", None),
            ("{node[uuid]", None),
            ("a}b", None),
            ("{", None),
        ] {
            assert_eq!(fields.expand(text).ok().as_deref(), expected, "{text}");
        }
    }
}
