"""Writes down what Ironic and the agent say to each other; Ironic itself stays as it is.

Python loads this file by itself when its folder is in PYTHONPATH. FARRIER_GOLDEN names the file that
gets one JSON object per exchange, in order of time. Tokens are masked.
"""

import io
import json
import os
import re
import threading
from importlib.util import find_spec

LOCK = threading.Lock()
TOKEN = re.compile(r"[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])")


def masked(value):
    if isinstance(value, dict):
        return {key: "AGENT-TOKEN" if key == "agent_token" and value[key] else masked(value[key]) for key in value}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value


def parsed(body):
    if isinstance(body, bytes):
        body = body.decode(errors="replace")
    try:
        return masked(json.loads(body)) if body else None
    except ValueError:
        return body


def record(**exchange):
    with LOCK, open(os.environ["FARRIER_GOLDEN"], "a") as file:
        file.write(json.dumps(exchange) + "\n")


def watch_commands():
    import requests

    send = requests.Session.send

    def recording_send(self, request, **options):
        response = send(self, request, **options)
        if "/v1/commands" in request.url:
            path = request.url.split("/", 3)[3]
            record(
                direction="conductor->agent",
                method=request.method,
                path="/" + TOKEN.sub("AGENT-TOKEN", path),
                request=parsed(request.body),
                status=response.status_code,
                reply=parsed(response.content),
            )
        return response

    requests.Session.send = recording_send


def watch_api():
    from cheroot import wsgi

    start = wsgi.Server.__init__

    def recording_init(self, bind_addr, wsgi_app, **options):
        start(self, bind_addr, lambda *call: recorded(wsgi_app, *call), **options)

    wsgi.Server.__init__ = recording_init


def recorded(application, environment, start_response):
    path = environment["PATH_INFO"]
    if path != "/" and not path.startswith(("/v1/lookup", "/v1/heartbeat")):
        return application(environment, start_response)
    body = environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
    environment["wsgi.input"] = io.BytesIO(body)
    seen = {}

    def keeping_status(status, headers, *rest):
        seen["status"] = int(status.split()[0])
        return start_response(status, headers, *rest)

    reply = b"".join(application(environment, keeping_status))
    query = environment.get("QUERY_STRING")
    record(
        direction="agent->conductor",
        method=environment["REQUEST_METHOD"],
        path=path + ("?" + query if query else ""),
        version=environment.get("HTTP_X_OPENSTACK_IRONIC_API_VERSION"),
        request=parsed(body),
        status=seen["status"],
        reply=parsed(reply),
    )
    return [reply]


# Ironic before it used cheroot cannot be watched in this way.
if "FARRIER_GOLDEN" in os.environ and find_spec("cheroot"):
    watch_commands()
    watch_api()
