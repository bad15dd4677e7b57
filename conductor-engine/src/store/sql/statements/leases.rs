//! Leases.

statements! {
    HOLDER = "SELECT reservation FROM nodes WHERE uuid = $1";
    /// A holder is no empty text: an index finds what is greater.
    HELD = "SELECT uuid, reservation, lease_epoch, lease_expires_at FROM nodes \
    WHERE reservation > '' AND lease_expires_at IS NOT NULL";
    /// Nodes that are not at rest, or of which something is ordered, and whose lease nobody holds at a time. There are
    /// fewer orders than nodes, so they come first.
    UNATTENDED = "SELECT uuid FROM nodes WHERE provision_state IN ('verifying', 'deploying', 'wait call-back', \
    'deleting', 'cleaning', 'clean wait', 'inspecting', 'inspect wait', 'adopting', 'rescuing', 'rescue wait', \
    'unrescuing', 'servicing', 'service wait') AND (reservation IS NULL OR lease_expires_at <= $1) \
    UNION SELECT nodes.uuid FROM orders CROSS JOIN nodes WHERE nodes.uuid = orders.node \
    AND (nodes.reservation IS NULL OR nodes.lease_expires_at <= $1)";
    /// Holder, time of expiry, time now, and the holder of the last lease or an empty text.
    TAKE = "UPDATE nodes SET reservation = $2, lease_expires_at = $3, \
    lease_epoch = lease_epoch + 1 WHERE uuid = $1 AND (reservation IS NULL OR lease_expires_at <= $4) \
    AND COALESCE(reservation, '') = $5 RETURNING lease_epoch";
    RENEW = "UPDATE nodes SET lease_expires_at = $3 \
    WHERE uuid = $1 AND lease_epoch = $2 AND reservation IS NOT NULL";
    RELEASE = "UPDATE nodes SET reservation = NULL, lease_expires_at = NULL WHERE uuid = $1 AND lease_epoch = $2";
    /// A lease as it was seen: node, epoch, time of expiry.
    EXPIRE = "UPDATE nodes SET lease_expires_at = 0, lease_epoch = lease_epoch + 1 \
    WHERE uuid = $1 AND lease_epoch = $2 AND lease_expires_at = $3";
    EXPIRE_ALL = "UPDATE nodes SET lease_expires_at = 0, lease_epoch = lease_epoch + 1 WHERE reservation = $1";
    /// A lease that begins and ends at once, of a node to which nothing happened since it had this epoch: it orders the
    /// issue of a token before or after every other write.
    PASS = "UPDATE nodes SET lease_epoch = lease_epoch + 1 WHERE uuid = $1 AND lease_epoch = $2 \
    AND (reservation IS NULL OR lease_expires_at <= $3)";
}
