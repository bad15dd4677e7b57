"""Downloads an image as the Python agent does: in chunks of 1 MiB, each hashed before it is stored."""

import hashlib
import sys
import urllib.request

CHUNK_BYTES = 1 << 20

url, path, algorithm, expected = sys.argv[1:]
digest = hashlib.new(algorithm)
with urllib.request.urlopen(url) as answer, open(path, "wb") as file:
    while chunk := answer.read(CHUNK_BYTES):
        digest.update(chunk)
        file.write(chunk)
if digest.hexdigest() != expected:
    sys.exit("%s has the %s %s, expected %s" % (url, algorithm, digest.hexdigest(), expected))
