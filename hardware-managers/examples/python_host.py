"""Hosts a Python hardware manager class in the external manager protocol.

A manager is a class as the Ironic Python Agent knows it: HARDWARE_MANAGER_NAME and
HARDWARE_MANAGER_VERSION, evaluate_hardware_support(), get_clean_steps(node, ports) and the like, and one
method per step that takes node and ports. Name it in an executable of its own:

    #!/usr/bin/env python3
    from python_host import serve
    from my_managers import MyHardwareManager
    serve(MyHardwareManager)
"""

import json
import os
import sys

PHASES = ("clean", "deploy", "service")


class Incompatible(Exception):
    """Raised by a step that cannot be done on this machine."""


def serve(manager_class):
    """Answers the one request of this process."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What the manager prints must not look like an answer.

    def say(**line):
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    request = json.loads(sys.stdin.readline())
    try:
        manager = manager_class()
        manager.report_progress = lambda percent, text="": say(progress={"percent": percent, "text": text})
        say(result=answer(manager, request))
    except Exception as error:
        refusal = type(error).__name__ in ("Incompatible", "IncompatibleHardwareMethodError")
        text = "%s: %s" % (type(error).__name__, error)
        say(**({"incompatible": text} if refusal else {"error": {"message": text}}))


def answer(manager, request):
    name = request["request"]
    if name == "describe":
        version = manager.get_version() if hasattr(manager, "get_version") else {}
        class_name = type(manager).__name__
        return {
            "class_name": class_name,
            "name": version.get("name", getattr(manager, "HARDWARE_MANAGER_NAME", class_name)),
            "version": str(version.get("version", getattr(manager, "HARDWARE_MANAGER_VERSION", "1.0"))),
        }
    if name == "evaluate":
        return {"support": int(manager.evaluate_hardware_support())}
    if name == "list_steps":
        return {"steps": list(steps(manager).values())}
    if name == "run_step" and request["step"] in steps(manager):
        method = getattr(manager, request["step"])
        return method(request["node"], request["ports"], **request["arguments"])
    raise ValueError("request %s is not known" % name)


def steps(manager):
    """The steps of all phases by name, in the protocol's form."""
    found = {}
    for phase in PHASES:
        method = getattr(manager, "get_%s_steps" % phase, None)
        for step in method({}, []) if method else []:
            entry = found.setdefault(step["step"], {"step": step["step"], "priorities": {}})
            entry["interface"] = step.get("interface", "deploy")
            entry["priorities"][phase] = step.get("priority", 0)
            entry["reboot_requested"] = bool(step.get("reboot_requested"))
            entry["abortable"] = bool(step.get("abortable"))
            arguments = step.get("argsinfo") or {}
            entry["arguments"] = {
                name: {"description": info.get("description", ""), "required": bool(info.get("required"))}
                for name, info in arguments.items()
            }
    return found
