//! Nodes, their ports, their orders and the sessions of their agents.

statements! {
    RECORD = select_records!("WHERE nodes.uuid = $1 ORDER BY ports.place");
    RECORD_BY_NAME = select_records!("WHERE nodes.name = $1 ORDER BY ports.place");
    /// What tells whether a record is as it was: versions of the node and of its session, and the lease.
    REVISION = "SELECT nodes.version AS node_version, agent_sessions.version AS session_version, nodes.reservation, \
    nodes.lease_epoch, nodes.lease_expires_at FROM nodes JOIN agent_sessions ON agent_sessions.node = nodes.uuid \
    WHERE nodes.uuid = $1";
    PROVISION_STATES = "SELECT provision_state, COUNT(*) AS counted FROM nodes GROUP BY provision_state";
    SHARDS = "SELECT shard, COUNT(*) AS counted FROM nodes GROUP BY shard";
    INSERT_NODE = "INSERT INTO nodes (uuid, name, driver, conductor_group, resource_class, owner, \
    lessee, shard, parent_node, instance_uuid, instance_name, allocation_uuid, provision_state, \
    target_provision_state, provision_updated_at, power_state, target_power_state, maintenance, fault, created_at, \
    updated_at, chassis_uuid, console_enabled, retired, protected, lease_epoch, version) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, \
    $24, $25, 0, 0)";
    /// The guard of everything that is written under a lease: no row when the lease has ended, or its epoch, the last
    /// parameter, was overtaken.
    UPDATE_NODE = "UPDATE nodes SET name = $2, driver = $3, conductor_group = $4, \
    resource_class = $5, owner = $6, lessee = $7, shard = $8, parent_node = $9, instance_uuid = $10, \
    instance_name = $11, allocation_uuid = $12, provision_state = $13, target_provision_state = $14, \
    provision_updated_at = $15, power_state = $16, target_power_state = $17, maintenance = $18, fault = $19, \
    created_at = $20, updated_at = $21, chassis_uuid = $22, console_enabled = $23, retired = $24, protected = $25, \
    version = version + 1 WHERE uuid = $1 AND lease_epoch = $26 AND reservation IS NOT NULL";
    DELETE_NODE = "DELETE FROM nodes WHERE uuid = $1 AND lease_epoch = $2 AND reservation IS NOT NULL";
    INSERT_DOCUMENT = "INSERT INTO node_documents (node, document) VALUES ($1, $2)";
    /// A document that is as it was is not written.
    UPDATE_DOCUMENT = "UPDATE node_documents SET document = $2 WHERE node = $1 AND document <> $2";
    CONFIG_DRIVE = "SELECT content FROM config_drives WHERE node = $1";
    INSERT_CONFIG_DRIVE = "INSERT INTO config_drives (node, content) VALUES ($1, $2)";
    DELETE_CONFIG_DRIVE = "DELETE FROM config_drives WHERE node = $1";
    PORT = select_ports!("WHERE ports.uuid = $1 OR ports.name = $1");
    PORTS_OF_NODE = select_ports!("WHERE ports.node = $1 ORDER BY ports.place");
    OWNER = "SELECT node FROM ports WHERE address = $1";
    /// A new port comes after those that the node has.
    INSERT_PORT = "INSERT INTO ports (uuid, address, name, updated_at, created_at, document, node, \
    place) VALUES ($1, $2, $3, $4, $5, $6, $7, (SELECT COALESCE(MAX(place), -1) + 1 FROM ports WHERE node = $7))";
    UPDATE_PORT = "UPDATE ports SET address = $2, name = $3, updated_at = $4, document = $5 WHERE uuid = $1";
    DELETE_PORT = "DELETE FROM ports WHERE uuid = $1";
    /// The nodes that wait for a ramdisk and whose BMC has an address.
    AT_BMC = "SELECT node_keys.node FROM node_keys JOIN nodes ON nodes.uuid = node_keys.node \
    WHERE node_keys.kind = 'bmc_address' AND node_keys.value = $1 AND nodes.provision_state = 'inspect wait'";
    KEYS_OF_NODE = "SELECT kind, value FROM node_keys WHERE node = $1";
    INSERT_KEY = "INSERT INTO node_keys (node, kind, value) VALUES ($1, $2, $3)";
    DELETE_KEY = "DELETE FROM node_keys WHERE node = $1 AND kind = $2 AND value = $3";
    INSERT_SESSION = "INSERT INTO agent_sessions (node, agent_secret_token, agent_url, \
    agent_version, agent_last_heartbeat, agent_verify_ca, agent_status, agent_status_message, document, \
    version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0)";
    REPLACE_SESSION = "UPDATE agent_sessions SET agent_secret_token = $2, agent_url = $3, \
    agent_version = $4, agent_last_heartbeat = $5, agent_verify_ca = $6, agent_status = $7, \
    agent_status_message = $8, document = $9 WHERE node = $1";
    UPDATE_SESSION_DOCUMENT = "UPDATE agent_sessions SET document = $2 WHERE node = $1";
    ISSUE_TOKEN = "UPDATE agent_sessions SET agent_secret_token = $2 WHERE node = $1 AND agent_secret_token IS NULL";
    HEAR = "UPDATE agent_sessions SET agent_url = $3, agent_version = $4, \
    agent_last_heartbeat = $5, agent_verify_ca = $6, agent_status = $7, agent_status_message = $8, version = version + 1 \
    WHERE node = $1 AND agent_secret_token = $2 AND (agent_url IS NULL OR agent_url = $3) \
    AND (agent_verify_ca IS NULL OR agent_verify_ca = $6)";
    INSERT_ORDER = "INSERT INTO orders (node, verb, ordered_at, attempts) VALUES ($1, $2, $3, $4)";
    DELETE_ORDER = "DELETE FROM orders WHERE node = $1";
}
