"""Serves a WSGI application on a port of the loopback address, until standard input ends: serve.py MODULE PORT [OPTION...]

The options are those of the application.
"""

import importlib
import os
import sys
import threading
from wsgiref.simple_server import make_server


def end_with_standard_input():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=end_with_standard_input, daemon=True).start()
module, port = sys.argv.pop(1), int(sys.argv.pop(1))
make_server("127.0.0.1", port, importlib.import_module(module).application).serve_forever()
