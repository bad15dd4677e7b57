//! Which nodes the list shows, and in which order: all of it is in its address.

use super::cursor::Cursor;
use crate::form::Form;
use crate::refusal::Refusal;
use farrier_conductor::model::{Fault, ProvisionState};
use farrier_engine::store::{Filter, NodeColumn};
use std::collections::BTreeMap;
use url::form_urlencoded::Serializer;

/// A word of the address that chooses nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    /// What the form calls it.
    pub(crate) label: &'static str,
    pub(crate) by: By,
}

/// How a word chooses.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    /// The beginning of a name, an identity or a hardware address.
    Beginning,
    /// One of some texts of a column.
    OneOf(&'static str, fn() -> Vec<&'static str>),
    /// A text of a column.
    Text(&'static str),
    /// A flag of a column.
    Flag(&'static str),
    /// Whether an operator must act.
    Operator,
}

/// The words, in the order of the form.
pub(crate) const WORDS: &[Word] = &[
    Word { name: "q", label: "Name, UUID or MAC address begins with", by: By::Beginning },
    Word { name: "state", label: "State", by: By::OneOf("provision_state", states) },
    Word { name: "needs", label: "Needs an operator", by: By::Operator },
    Word { name: "maintenance", label: "Maintenance", by: By::Flag("maintenance") },
    Word { name: "fault", label: "Fault", by: By::OneOf("fault", faults) },
    Word { name: "driver", label: "Driver", by: By::Text("driver") },
    Word { name: "conductor_group", label: "Conductor group", by: By::Text("conductor_group") },
    Word { name: "resource_class", label: "Resource class", by: By::Text("resource_class") },
    Word { name: "owner", label: "Owner", by: By::Text("owner") },
    Word { name: "instance_name", label: "Instance name", by: By::Text("instance_name") },
];

/// What a flag can be.
pub(crate) const FLAG: [&str; 2] = ["yes", "no"];

/// The values of the word that asks for nodes that need an operator.
pub(crate) const OPERATOR: [&str; 2] = ["operator", "none"];

/// An order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    /// The column; each of them has an index.
    pub(crate) column: &'static str,
    pub(crate) is_descending: bool,
    /// Whether nodes that need an operator come before all others.
    pub(crate) operators_first: bool,
}

/// The orders; the first one is that of an address without one.
pub(crate) const ORDERS: &[Order] = &[
    order("operator", "Needs an operator first", "created_at", false, true),
    order("name", "Name", "name", false, false),
    order("changed", "State changed last", "provision_updated_at", true, false),
    order("waiting", "Longest in its state", "provision_updated_at", false, false),
    order("newest", "Enrolled last", "created_at", true, false),
];

const fn order(
    name: &'static str,
    label: &'static str,
    column: &'static str,
    is_descending: bool,
    operators_first: bool,
) -> Order {
    Order { name, label, column, is_descending, operators_first }
}

fn states() -> Vec<&'static str> {
    ProvisionState::ALL.iter().map(|state| state.as_str()).collect()
}

fn faults() -> Vec<&'static str> {
    Fault::ALL.iter().map(|fault| fault.as_str()).collect()
}

/// What an address asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListQuery {
    words: BTreeMap<&'static str, String>,
    order: Option<Order>,
    pub(crate) after: Option<Cursor>,
}

impl ListQuery {
    /// Reads the query of an address. Fields of the form that are empty ask for nothing.
    ///
    /// # Errors
    ///
    /// A word that is not known, or has a value that it cannot have: it would choose nothing without an error.
    pub(crate) fn read(query: &str) -> Result<Self, Refusal> {
        let mut read = Self::default();
        for (name, value) in Form::of(query.as_bytes()).fields() {
            let value = value.trim();
            let unusable = || {
                Refusal::bad_request(format!("The address has {name:?} with a value that it cannot have."))
            };
            match name {
                _ if value.is_empty() => {}
                "sort" => {
                    let order = ORDERS.iter().find(|order| order.name == value);
                    read.order = Some(*order.ok_or_else(unusable)?);
                }
                "after" => read.after = Some(Cursor::read(value).ok_or_else(unusable)?),
                _ => {
                    let word = WORDS.iter().find(|word| word.name == name);
                    let word = word.ok_or_else(|| {
                        Refusal::bad_request(format!("The address has the unknown word {name:?}."))
                    })?;
                    if word.by.choices().is_some_and(|choices| !choices.contains(&value)) {
                        return Err(unusable());
                    }
                    read.words.insert(word.name, value.to_owned());
                }
            }
        }
        Ok(read)
    }

    /// The query of the address of the same list, whatever its page.
    pub(crate) fn text(&self) -> String {
        let address = address(&self.words, self.order, None);
        address.split_once('?').map(|(_, query)| query.to_owned()).unwrap_or_default()
    }

    /// The value of a word; empty where it asks for nothing.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.words.get(name).map_or("", String::as_str)
    }

    /// Whether all nodes are shown.
    pub(crate) fn is_everything(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn order(&self) -> Order {
        self.order.unwrap_or(ORDERS[0])
    }

    /// What nodes must be like.
    pub(crate) fn filters(&self) -> Vec<Filter> {
        let asked = WORDS.iter().filter_map(|word| Some((word.by, self.words.get(word.name)?)));
        asked.map(|(by, value)| by.filter(value)).collect()
    }

    /// Whether the nodes that need an operator are asked for, or the others.
    pub(crate) fn asks_for_operators(&self) -> bool {
        self.words.contains_key("needs")
    }

    /// The address of the first page of the same list with another value of a word.
    pub(crate) fn with(&self, name: &'static str, value: &str) -> String {
        let mut words = self.words.clone();
        match value {
            "" => words.remove(name),
            value => words.insert(name, value.to_owned()),
        };
        address(&words, self.order, None)
    }

    /// The address of the page after a place.
    pub(crate) fn after(&self, cursor: &Cursor) -> String {
        address(&self.words, self.order, Some(cursor))
    }
}

fn address(words: &BTreeMap<&'static str, String>, order: Option<Order>, after: Option<&Cursor>) -> String {
    let mut query = Serializer::new(String::new());
    query.extend_pairs(words);
    if let Some(order) = order.filter(|order| *order != ORDERS[0]) {
        query.append_pair("sort", order.name);
    }
    if let Some(after) = after {
        query.append_pair("after", &after.to_string());
    }
    match query.finish() {
        query if query.is_empty() => "/page/".to_owned(),
        query => format!("/page/?{query}"),
    }
}

impl By {
    /// The values that it can have, where not every text is one.
    pub(crate) fn choices(self) -> Option<Vec<&'static str>> {
        match self {
            Self::OneOf(_, texts) => Some(texts()),
            Self::Flag(_) => Some(FLAG.to_vec()),
            Self::Operator => Some(OPERATOR.to_vec()),
            Self::Beginning | Self::Text(_) => None,
        }
    }

    fn filter(self, value: &str) -> Filter {
        match self {
            Self::Beginning => Filter::begins_with(value),
            Self::OneOf(field, _) | Self::Text(field) => {
                Filter::IsOneOf(column(field), vec![value.to_owned()])
            }
            Self::Flag(field) => Filter::Flag(column(field), value == FLAG[0]),
            Self::Operator => Filter::NeedsOperator(value == OPERATOR[0]),
        }
    }
}

/// A field of the list, each of which is a column.
pub(crate) fn column(field: &str) -> NodeColumn {
    NodeColumn::named(field).expect("the list has columns alone")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_asks_for_the_same_list_when_it_is_read_again() {
        for (query, expected) in [
            ("", "/page/"),
            ("q=&state=&driver=+", "/page/"),
            ("state=deploy+failed&q=rack+1%2F", "/page/?q=rack+1%2F&state=deploy+failed"),
            ("sort=operator", "/page/"),
            ("sort=name&maintenance=yes", "/page/?maintenance=yes&sort=name"),
            ("q=%3Cscript%3E", "/page/?q=%3Cscript%3E"),
        ] {
            let read = ListQuery::read(query).unwrap();
            let address = address(&read.words, read.order, read.after.as_ref());
            assert_eq!(address, expected, "{query}");
        }
        let read = ListQuery::read("state=active&needs=operator").unwrap();
        assert_eq!(read.with("state", ""), "/page/?needs=operator");
        assert_eq!(read.with("state", "enroll"), "/page/?needs=operator&state=enroll");
        assert_eq!(read.filters().len(), 2);
    }

    #[test]
    fn unknown_words_and_values_are_refused() {
        for query in
            ["state=nowhere", "x=1", "sort=colour", "needs=me", "maintenance=true", "after=x", "fault=9"]
        {
            assert!(ListQuery::read(query).is_err(), "{query}");
        }
    }

    #[test]
    fn every_word_and_every_order_is_of_a_column() {
        for word in WORDS {
            let value = word.by.choices().map_or("x", |choices| choices[0]);
            word.by.filter(value);
        }
        for order in ORDERS {
            column(order.column);
        }
    }
}
