"""Writes down what Ironic and the agent say to each other; Ironic itself stays as it is.

Python loads this file by itself when its folder is in PYTHONPATH. FARRIER_GOLDEN names the file that
gets one JSON object per exchange, in order of time. Tokens are masked, folders read /srv/ironic and
/srv/farrier, and of archives only the beginning is kept.
"""

import io
import json
import os
import re
import sys
from importlib.machinery import PathFinder

TOKEN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])")
RAMDISK = re.compile(r"^file:///\S+/")
# Longer texts are certificates and config drives, in which anything may look like a token.
SHORT = 200
AGENT_PATHS = ("/v1/lookup", "/v1/heartbeat", "/v1/continue_inspection")
ARCHIVES = ("logs", "system_logs")


def folder():
    """The one with the configuration file, which holds whatever this Ironic writes."""
    files = [value for name, value in zip(sys.argv, sys.argv[1:]) if name == "--config-file"]
    return os.path.dirname(files[0]) if files else None


def tidied(value, key=None):
    if isinstance(value, dict):
        return {key: tidied(value[key], key) for key in value}
    if isinstance(value, list):
        return [tidied(item) for item in value]
    if not isinstance(value, str):
        return value
    if key in ARCHIVES:
        return value[:12]
    if len(value) > SHORT:
        return value
    if own := folder():
        value = value.replace(own, "/srv/ironic")
    return TOKEN.sub("AGENT-TOKEN", RAMDISK.sub("file:///srv/farrier/", value))


def parsed(body):
    if isinstance(body, bytes):
        body = body.decode(errors="replace")
    try:
        return tidied(json.loads(body)) if body else None
    except ValueError:
        return body


def record(**exchange):
    line = json.dumps(exchange) + "\n"
    # In one piece, whoever else writes meanwhile.
    with open(os.environ["FARRIER_GOLDEN"], "ab", buffering=0) as file:
        file.write(line.encode())


def watch_commands(agent_client):
    session = agent_client.requests.Session
    send = session.send

    def recording_send(self, request, **options):
        response = send(self, request, **options)
        if "/v1/commands" in request.url:
            record(
                direction="conductor->agent",
                method=request.method,
                path="/" + tidied(request.url.split("/", 3)[3]),
                request=parsed(request.body),
                status=response.status_code,
                reply=parsed(response.content),
            )
        return response

    session.send = recording_send


def watch_api(app):
    application = app.VersionSelectorApplication
    call = application.__call__
    application.__call__ = lambda self, *request: recorded(lambda *same: call(self, *same), *request)


def recorded(application, environment, start_response):
    path = environment["PATH_INFO"]
    if path != "/" and not path.startswith(AGENT_PATHS):
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


class Watch:
    """Finds modules as Python does, and has those that speak to agents watched as soon as they are loaded."""

    WATCHED = {"ironic.api.app": watch_api, "ironic.drivers.modules.agent_client": watch_commands}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        watch = cls.WATCHED.get(name)
        spec = watch and PathFinder.find_spec(name, path)
        if spec:
            load = spec.loader.exec_module

            def load_and_watch(module):
                load(module)
                watch(module)

            spec.loader.exec_module = load_and_watch
        return spec


# Not before Ironic itself has loaded them: some releases change sockets and threads first.
if "FARRIER_GOLDEN" in os.environ:
    sys.meta_path.insert(0, Watch)
