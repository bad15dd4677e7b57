#!/usr/bin/env python3
"""A third party's hardware manager: a clean step that compares the asset tag with the node's record."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from python_host import Incompatible, serve  # noqa: E402

DMI = os.environ.get("DMI_DIRECTORY", "/sys/class/dmi/id")


class AssetTagManager:
    HARDWARE_MANAGER_NAME = "asset_tag"
    HARDWARE_MANAGER_VERSION = "1.1"

    def evaluate_hardware_support(self):
        return 3

    def get_clean_steps(self, node, ports):
        arguments = {"prefix": {"description": "What every tag begins with", "required": False}}
        return [
            {
                "step": "check_asset_tag",
                "interface": "deploy",
                "priority": 20,
                "reboot_requested": False,
                "abortable": True,
                "argsinfo": arguments,
            }
        ]

    def check_asset_tag(self, node, ports, prefix=""):
        self.report_progress(50, "reading the asset tag")
        try:
            with open(os.path.join(DMI, "chassis_asset_tag")) as file:
                tag = file.read().strip()
        except OSError as error:
            raise Incompatible("this machine has no asset tag") from error
        expected = node.get("properties", {}).get("asset_tag", tag)
        if tag != expected or not tag.startswith(prefix):
            raise ValueError("the asset tag is %r, expected %r" % (tag, expected))
        return {"asset_tag": tag}


serve(AssetTagManager)
