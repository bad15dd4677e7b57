//! Patches of plain records: which fields they change, and what becomes of these.

use crate::wire::fields::{Field, settable};
use crate::wire::json_patch::{self, Op, Operation};
use crate::wire::reply::{Refusal, read_json};
use farrier_protocol::heartbeat::ApiVersion;
use serde_json::{Map, Value};

/// A patch of a record whose fields are in a table.
#[derive(Debug)]
pub(crate) struct Patch {
    operations: Vec<Operation>,
    changed: Vec<&'static Field>,
}

impl Patch {
    /// Reads the body of a PATCH.
    ///
    /// # Errors
    ///
    /// 400 for one that is none, or changes a field that may not be changed; 406 for a field of a later version.
    pub(crate) fn read(body: &[u8], table: &'static [Field], version: ApiVersion) -> Result<Self, Refusal> {
        let operations: Vec<Operation> = read_json(body)?;
        json_patch::check_length(&operations)?;
        let mut changed = Vec::new();
        for operation in &operations {
            let may = |field: &Field| field.on_patch || operation.op == Op::Test;
            changed.push(settable(table, &operation.field()?, version, may, "by a patch")?);
        }
        Ok(Self { operations, changed })
    }

    /// The record as it is afterwards.
    ///
    /// # Errors
    ///
    /// 400 for a place that there is not, or a value that a field cannot have.
    pub(crate) fn apply(&self, mut record: Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
        for field in &self.changed {
            record.entry(field.name).or_insert_with(|| field.kind.default());
        }
        for operation in &self.operations {
            operation.apply(&mut record)?;
        }
        for field in &self.changed {
            let value = record.remove(field.name).unwrap_or_default();
            record.insert(field.name.to_owned(), field.read(value)?);
        }
        Ok(record)
    }
}
