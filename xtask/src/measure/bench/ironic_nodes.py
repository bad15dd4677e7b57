"""Fills the database of an Ironic with nodes whose agents run."""

import datetime
import sys
import uuid

from ironic.common import service
from ironic.db.sqlalchemy import api
from ironic.db.sqlalchemy import models
from ironic import objects

configuration, count, state, token, url = sys.argv[1:]
objects.register_all()
service.prepare_command(["nodes", "--config-file", configuration])
now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
nodes, ports = [], []
for number in range(int(count)):
    identity = str(uuid.UUID(int=number + 1))
    nodes.append({
        "id": number + 1, "uuid": identity, "name": f"n{number}", "driver": "manual-management",
        "version": objects.Node.VERSION, "provision_state": state if number % 2 == 0 else "wait call-back",
        "provision_updated_at": now, "power_state": "power on", "maintenance": False, "conductor_group": "",
        "driver_info": {}, "instance_info": {}, "properties": {}, "extra": {},
        "power_interface": "fake", "management_interface": "noop", "deploy_interface": "direct", "boot_interface": "ipxe",
        "bios_interface": "no-bios", "console_interface": "no-console", "firmware_interface": "no-firmware",
        "inspect_interface": "agent", "network_interface": "noop", "raid_interface": "no-raid", "rescue_interface": "agent",
        "storage_interface": "noop", "vendor_interface": "no-vendor",
        "driver_internal_info": {"agent_secret_token": token, "agent_url": url},
    })
    ports.append({
        "uuid": str(uuid.uuid4()), "node_id": number + 1, "version": objects.Port.VERSION, "pxe_enabled": True,
        "address": ":".join(f"{byte:02x}" for byte in (0x525400000000 + number).to_bytes(6, "big")),
    })
with api._session_for_write() as session:
    session.bulk_insert_mappings(models.Node, nodes)
    session.bulk_insert_mappings(models.Port, ports)
