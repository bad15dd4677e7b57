-- Orders in which people read long lists of nodes, and the nodes that need an operator, which come first.
CREATE INDEX nodes_by_name ON nodes (COALESCE(name, ''), uuid);
CREATE INDEX nodes_by_change ON nodes (provision_updated_at, uuid);
CREATE INDEX nodes_for_operators ON nodes (created_at, uuid) WHERE maintenance OR provision_state IN
    ('deploy hold', 'deploy failed', 'error', 'clean hold', 'clean failed', 'inspect failed', 'adopt failed',
     'rescue failed', 'unrescue failed', 'service hold', 'service failed');
