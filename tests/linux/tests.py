"""Runs modules of Python's own tests, which are arguments, in the directory where it is called, and prints a line for each test: its name, and how it ended.

A module is run by a process of its own, so that one that ends, or hangs, keeps no other from running. Tests that want the network, much time or much room are skipped, as
they are unless somebody asks for them. `--more PATH`: where the tests are if they are not with Python's library.
"""

import os
import subprocess
import sys
import time
import unittest

# Seconds after which a module is ended.
LIMIT = int(os.environ.get("TESTS_LIMIT", "3600"))


class Lines(unittest.TestResult):
    """A line for each test."""

    def __init__(self, out):
        super().__init__()
        self.out, self.how = out, "ok"

    def startTest(self, test):
        super().startTest(test)
        self.how, self.since = "ok", time.monotonic()

    def tell(self, name, how):
        print(f"@@ {name} {how}", file=self.out, flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        self.tell(test.id(), self.how)
        if os.environ.get("TESTS_TIMES"):
            print(f"   {time.monotonic() - self.since:.1f} s", file=self.out, flush=True)

    def went_wrong(self, how, test, error):
        self.how = how
        # A class, or a module, that cannot begin has no test that does.
        if not isinstance(test, unittest.TestCase):
            self.tell(test.id(), how)
        if os.environ.get("TESTS_TEXTS"):
            print(self._exc_info_to_string(error, test), file=self.out, flush=True)

    def addError(self, test, error):
        self.went_wrong("error", test, error)

    def addFailure(self, test, error):
        self.went_wrong("failure", test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.went_wrong("failure", test, error)

    def addSkip(self, test, reason):
        self.how = "skipped"
        if not isinstance(test, unittest.TestCase):
            self.tell(test.id(), "skipped")

    def addUnexpectedSuccess(self, test):
        self.how = "failure"


def run(module, more):
    """Runs a module's tests, with the output that is theirs elsewhere."""
    import test
    from test import support

    test.__path__.extend(more)
    support.use_resources = []
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if not os.environ.get("TESTS_TEXTS"):
        os.dup2(1, 2)
    unittest.TestLoader().loadTestsFromName(f"test.{module}").run(Lines(out))


def main(arguments):
    more = []
    if arguments[:1] == ["--more"]:
        more, arguments = [arguments[1]], arguments[2:]
    if arguments[:1] == ["--one"]:
        return run(arguments[1], more)
    for module in arguments:
        print(f"@@@ {module}", flush=True)
        ways = [argument for path in more for argument in ("--more", path)]
        command = [sys.executable, os.path.abspath(__file__), *ways, "--one", module]
        try:
            status = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=LIMIT).returncode
        except subprocess.TimeoutExpired:
            status = "late"
        print(f"@@@ = {status}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
