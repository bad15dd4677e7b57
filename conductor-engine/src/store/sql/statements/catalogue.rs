//! Records beside nodes.

statements! {
    ALLOCATION = "SELECT document FROM allocations WHERE uuid = $1 OR name = $1";
    INSERT_ALLOCATION = "INSERT INTO allocations (uuid, name, state, node_uuid, resource_class, \
    owner, document) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    UPDATE_ALLOCATION = "UPDATE allocations SET name = $2, state = $3, node_uuid = $4, \
    resource_class = $5, owner = $6, document = $7 WHERE uuid = $1 AND state = $8";
    DELETE_ALLOCATION = "DELETE FROM allocations WHERE uuid = $1";
    /// A node, and the allocation that it has or an empty text.
    END_ALLOCATIONS = "DELETE FROM allocations WHERE node_uuid = $1 AND uuid <> $2";
    RESOURCE = "SELECT document FROM resources WHERE (kind = $1 AND uuid = $2) OR (kind = $1 AND name = $2)";
    INSERT_RESOURCE = "INSERT INTO resources (uuid, kind, name, node, natural_key, document) \
    VALUES ($1, $2, $3, $4, $5, $6)";
    /// The document before comes last: another conductor may have written the resource.
    UPDATE_RESOURCE = "UPDATE resources SET name = $2, node = $3, natural_key = $4, document = $5 \
    WHERE uuid = $1 AND document = $6";
    DELETE_RESOURCE = "DELETE FROM resources WHERE uuid = $1";
}
