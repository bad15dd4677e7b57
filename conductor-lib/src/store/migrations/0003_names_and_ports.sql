-- Nodes may have no name, and ports have an identity, a name and times of their own. A column that may be null, and
-- another key, are had in both databases by tables that are made anew, those first that others refer to.
CREATE TABLE new_nodes (
    uuid TEXT PRIMARY KEY NOT NULL,
    name TEXT UNIQUE,
    driver TEXT NOT NULL,
    conductor_group TEXT NOT NULL,
    resource_class TEXT,
    owner TEXT,
    lessee TEXT,
    shard TEXT,
    parent_node TEXT,
    instance_uuid TEXT UNIQUE,
    instance_name TEXT,
    allocation_uuid TEXT,
    provision_state TEXT NOT NULL,
    target_provision_state TEXT,
    provision_updated_at BIGINT NOT NULL,
    power_state TEXT,
    target_power_state TEXT,
    maintenance BOOLEAN NOT NULL,
    fault TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    reservation TEXT,
    lease_epoch BIGINT NOT NULL,
    lease_expires_at BIGINT
);
INSERT INTO new_nodes (uuid, name, driver, conductor_group, resource_class, owner, lessee, instance_uuid,
    provision_state, target_provision_state, provision_updated_at, power_state, target_power_state, maintenance, fault,
    created_at, updated_at, reservation, lease_epoch, lease_expires_at)
SELECT uuid, name, driver, conductor_group, resource_class, owner, lessee, instance_uuid, provision_state,
    target_provision_state, provision_updated_at, power_state, target_power_state, maintenance, fault, created_at,
    updated_at, reservation, lease_epoch, lease_expires_at FROM nodes;

CREATE TABLE new_node_documents (
    node TEXT PRIMARY KEY NOT NULL REFERENCES new_nodes (uuid) ON DELETE CASCADE,
    document TEXT NOT NULL
);
INSERT INTO new_node_documents (node, document) SELECT node, document FROM node_documents;

CREATE TABLE new_config_drives (
    node TEXT PRIMARY KEY NOT NULL REFERENCES new_nodes (uuid) ON DELETE CASCADE,
    content TEXT NOT NULL
);
INSERT INTO new_config_drives (node, content) SELECT node, content FROM config_drives;

CREATE TABLE new_agent_sessions (
    node TEXT PRIMARY KEY NOT NULL REFERENCES new_nodes (uuid) ON DELETE CASCADE,
    agent_secret_token TEXT,
    agent_url TEXT,
    agent_version TEXT,
    agent_last_heartbeat BIGINT,
    agent_verify_ca TEXT,
    agent_status TEXT,
    agent_status_message TEXT,
    document TEXT NOT NULL
);
INSERT INTO new_agent_sessions (node, agent_secret_token, agent_url, agent_version, agent_last_heartbeat,
    agent_verify_ca, agent_status, agent_status_message, document)
SELECT node, agent_secret_token, agent_url, agent_version, agent_last_heartbeat, agent_verify_ca, agent_status,
    agent_status_message, document FROM agent_sessions;

CREATE TABLE new_orders (
    node TEXT PRIMARY KEY NOT NULL REFERENCES new_nodes (uuid) ON DELETE CASCADE,
    verb TEXT NOT NULL,
    ordered_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL
);
INSERT INTO new_orders (node, verb, ordered_at, attempts) SELECT node, verb, ordered_at, attempts FROM orders;

CREATE TABLE new_ports (
    uuid TEXT PRIMARY KEY NOT NULL,
    node TEXT NOT NULL REFERENCES new_nodes (uuid) ON DELETE CASCADE,
    place BIGINT NOT NULL,
    address TEXT UNIQUE NOT NULL,
    name TEXT UNIQUE,
    created_at BIGINT,
    updated_at BIGINT,
    document TEXT NOT NULL
);
-- An address is unique and as long as the end of an identity: so the node and it make one that nobody else has.
INSERT INTO new_ports (uuid, node, place, address, created_at, document)
SELECT substr(ports.node, 1, 24) || replace(ports.address, ':', ''), ports.node, ports.place, ports.address,
    nodes.created_at, ports.document FROM ports JOIN nodes ON nodes.uuid = ports.node;

DROP TABLE node_documents;
DROP TABLE config_drives;
DROP TABLE agent_sessions;
DROP TABLE orders;
DROP TABLE ports;
DROP TABLE nodes;
ALTER TABLE new_nodes RENAME TO nodes;
ALTER TABLE new_node_documents RENAME TO node_documents;
ALTER TABLE new_config_drives RENAME TO config_drives;
ALTER TABLE new_agent_sessions RENAME TO agent_sessions;
ALTER TABLE new_orders RENAME TO orders;
ALTER TABLE new_ports RENAME TO ports;
CREATE INDEX nodes_by_state ON nodes (provision_state);
CREATE INDEX nodes_by_reservation ON nodes (reservation);
CREATE INDEX nodes_by_age ON nodes (created_at, uuid);
CREATE INDEX ports_by_node ON ports (node, place);
