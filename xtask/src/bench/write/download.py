"""Downloads an image as the Python agent does: in chunks of 1 MiB, each hashed before it is stored."""

import hashlib
import sys
import urllib.request

CHUNK_BYTES = 1 << 20

url, path, expected = sys.argv[1:]
digest = hashlib.sha256()
with urllib.request.urlopen(url) as answer, open(path, "wb") as file:
    while chunk := answer.read(CHUNK_BYTES):
        digest.update(chunk)
        file.write(chunk)
if digest.hexdigest() != expected:
    sys.exit("%s has the SHA-256 %s, expected %s" % (url, digest.hexdigest(), expected))
