//! What a command is declared to be: one entry serves dispatch, validation, the reference pages and
//! the OpenAPI document.

use crate::agent::Agent;
use farrier_protocol::error::{CommandError, ErrorKind};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Named parameters of a command.
pub type Params = Map<String, Value>;

/// A command, declared once.
#[derive(Clone, Copy)]
pub struct Command {
    /// Name without the extension.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub help: &'static str,
    /// How it runs.
    pub kind: Kind,
    /// Parameters it understands.
    pub parameters: &'static [Parameter],
    /// Looks at the parameters before the command is accepted.
    pub validate: Option<Validate>,
    /// Does it, on a thread of its own.
    pub run: Run,
}

/// Judges parameters that have the declared names and types; an error refuses the command.
pub type Validate = fn(&Params) -> Result<(), CommandError>;
/// Does the work of a command.
pub type Run = fn(&Arc<Agent>, &Params) -> Result<Value, CommandError>;
/// Finds a command by extension and name.
pub type Find = fn(&str, &str) -> Result<&'static Command, CommandError>;

/// How a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The reply waits for the result.
    Sync,
    /// The reply comes at once.
    Async,
}

/// A parameter of a command.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// JSON types a value may have; none stands for all.
    pub types: &'static [JsonType],
    /// Whether the command needs it.
    pub required: bool,
    /// What it is for.
    pub help: &'static str,
    /// What JSON Schema says of it beyond that, as the command's validator judges it.
    pub schema: Option<fn() -> Value>,
}

/// A type of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// Number without a fraction.
    Integer,
    /// Text.
    String,
    /// List.
    Array,
    /// Object.
    Object,
}

impl JsonType {
    /// Its name in JSON Schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    fn covers(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

impl Parameter {
    /// Stands for parameters of any other name and type.
    pub const OTHERS: Self = Self { required: false, ..Self::required("*", &[], "Arguments of the step") };

    /// A parameter the command cannot do without.
    pub const fn required(name: &'static str, types: &'static [JsonType], help: &'static str) -> Self {
        Self { name, types, required: true, help, schema: None }
    }

    /// A parameter that may be left out.
    pub const fn optional(name: &'static str, types: &'static [JsonType], help: &'static str) -> Self {
        Self { required: false, ..Self::required(name, types, help) }
    }

    /// With what JSON Schema says of it.
    pub const fn described_by(self, schema: fn() -> Value) -> Self {
        Self { schema: Some(schema), ..self }
    }

    /// The names of its types, as in "string or null".
    pub fn type_names(&self) -> String {
        self.types.iter().map(|one| one.name()).collect::<Vec<_>>().join(" or ")
    }

    fn accepts(&self, value: &Value) -> bool {
        self.types.is_empty() || self.types.iter().any(|one| one.covers(value))
    }

    fn covers(&self, name: &str) -> bool {
        self.name == name || self.name == Self::OTHERS.name
    }
}

impl Command {
    /// Runs it as a part of another command, with all checks.
    ///
    /// # Errors
    ///
    /// Parameters were refused, or the command failed.
    pub fn run_checked(&self, agent: &Arc<Agent>, params: &Params) -> Result<Value, CommandError> {
        self.check_names(params)?;
        self.check_values(params)?;
        (self.run)(agent, params)
    }

    /// Unknown and missing parameters fail the command with the type that conductors take for "this
    /// agent is older" (section 1.5).
    ///
    /// # Errors
    ///
    /// A `TypeError` that names the parameter.
    pub fn check_names(&self, params: &Params) -> Result<(), CommandError> {
        let unknown = params.keys().find(|name| !self.parameters.iter().any(|known| known.covers(name)));
        if let Some(name) = unknown {
            let details = format!("{} has no parameter {name:?}", self.name);
            return Err(CommandError::new(ErrorKind::TypeError, details));
        }
        let missing = self.parameters.iter().find(|known| known.required && !params.contains_key(known.name));
        if let Some(parameter) = missing {
            let details = format!("{} needs the parameter {:?}", self.name, parameter.name);
            return Err(CommandError::new(ErrorKind::TypeError, details));
        }
        Ok(())
    }

    /// Judges values under names that are right.
    ///
    /// # Errors
    ///
    /// An `InvalidCommandParamsError` that names the parameter.
    pub fn check_values(&self, params: &Params) -> Result<(), CommandError> {
        for parameter in self.parameters {
            let Some(value) = params.get(parameter.name) else { continue };
            if !parameter.accepts(value) {
                let details = format!("{} must be of type {}", parameter.name, parameter.type_names());
                return Err(CommandError::new(ErrorKind::InvalidCommandParamsError, details));
            }
        }
        self.validate.map_or(Ok(()), |validate| validate(params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COMMAND: Command = Command {
        name: "prepare_image",
        help: "",
        kind: Kind::Async,
        parameters: &[
            Parameter::required("image_info", &[JsonType::Object, JsonType::Null], ""),
            Parameter::optional("configdrive", &[JsonType::String, JsonType::Null], ""),
        ],
        validate: None,
        run: |_, _| Ok(Value::Null),
    };

    fn params(value: Value) -> Params {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn unknown_and_missing_parameters_are_type_errors() {
        for (given, named) in [
            (json!({"image_info": {}, "force": true}), "force"),
            (json!({"configdrive": null}), "image_info"),
        ] {
            let error = COMMAND.check_names(&params(given)).unwrap_err();
            assert_eq!(error.kind, "TypeError");
            assert!(error.details.contains(named), "{}", error.details);
        }
        assert!(COMMAND.check_names(&params(json!({"image_info": null}))).is_ok());
    }

    #[test]
    fn values_of_another_type_are_refused() {
        for (given, refused) in [
            (json!({"image_info": {}}), None),
            (json!({"image_info": null, "configdrive": null}), None),
            (json!({"image_info": []}), Some("image_info must be of type object or null")),
            (json!({"image_info": {}, "configdrive": 1}), Some("configdrive must be of type string or null")),
        ] {
            let outcome = COMMAND.check_values(&params(given.clone()));
            assert_eq!(outcome.err().map(|error| error.details).as_deref(), refused, "{given}");
        }
    }
}
