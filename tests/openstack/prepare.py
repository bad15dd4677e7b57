"""Makes what Keystone and Neutron need to begin with: prepare.py FOLDER

Neutron's migrations alter constraints, which SQLite cannot: its tables are made from its models. Those of Keystone are made
by its own migrations, once this has made the file.
"""

import pathlib
import sqlite3
import sys

import sqlalchemy
from cryptography.fernet import Fernet
from neutron.db.migration.models import head

folder = pathlib.Path(sys.argv[1])
for name in ["keystone", "neutron"]:
    # Kept by the file: who reads does not keep others from writing.
    sqlite3.connect(folder / f"{name}.sqlite").execute("PRAGMA journal_mode = WAL").fetchone()
head.get_metadata().create_all(sqlalchemy.create_engine(f"sqlite:///{folder}/neutron.sqlite"))
# The key that tokens are signed by, and the next one.
keys = folder / "keys"
keys.mkdir(mode=0o700)
for number in ["1", "0"]:
    (keys / number).write_bytes(Fernet.generate_key())
