"""Runs the tests in a folder below the current one, and prints what came of each: run_tests.py FOLDER

A class that fails or skips itself as it is set up does so with all of its tests.
"""

import sys
import unittest

CLASS = "setUpClass ("


class Result(unittest.TestResult):
    def __init__(self, tests):
        super().__init__()
        self.outcomes = dict.fromkeys(tests, "was not run")

    def note(self, test, outcome):
        name = test.id()
        names = [name]
        if name.startswith(CLASS):
            of_class = name.removeprefix(CLASS).removesuffix(")") + "."
            names = [test for test in self.outcomes if test.startswith(of_class)] or names
        for name in names:
            # A test that failed may go on to fail, or to skip itself, as it is torn down.
            if self.outcomes.get(name) != "failed":
                self.outcomes[name] = outcome

    def addSuccess(self, test):
        self.note(test, "passed")

    def addExpectedFailure(self, test, error):
        self.note(test, "passed")

    def addSkip(self, test, reason):
        self.note(test, "skipped")

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed")

    def addError(self, test, error):
        self.note(test, "failed")
        super().addError(test, error)

    def addFailure(self, test, error):
        self.note(test, "failed")
        super().addFailure(test, error)

    def addSubTest(self, test, part, error):
        if error is not None:
            self.addError(test, error)


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test.id()


suite = unittest.defaultTestLoader.discover(sys.argv[1], top_level_dir=".")
result = Result(tests_of(suite))
suite.run(result)
for test, error in result.errors + result.failures:
    print(test.id(), error, file=sys.stderr)
for name, outcome in result.outcomes.items():
    # Without the modules before its class, and the labels after it.
    print("came of it:", outcome, "of", ".".join(name.partition("[")[0].rsplit(".", 2)[-2:]))
