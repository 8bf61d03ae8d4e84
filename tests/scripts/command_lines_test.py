"""Tests of scripts/setup and of the other scripts' arguments, with a package manager that only takes notes."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"

NOTE_CALL = '#!/bin/sh\necho "$(basename "$0") $*" >>"$CALLS"\n'


def run(command, env=None):
    return subprocess.run([str(part) for part in command], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


class Setup(unittest.TestCase):
    """A PATH whose apt-get, sudo, id and dpkg-query are ours; `installed` is what dpkg-query knows."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.calls = self.folder / "calls"
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for tool in ["bash", "sh", "env", "cat", "sed", "grep", "basename"]:
            real = run(["sh", "-c", f"command -v {tool}"]).stdout.strip()
            (self.bin / tool).symlink_to(real)
        self.tool("apt-get", NOTE_CALL)
        self.be_user(0)

    def tool(self, name, text):
        path = self.bin / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def be_user(self, uid):
        self.tool("id", f"#!/bin/sh\necho {uid}\n")

    def have(self, installed):
        lines = "".join(f"ii  {package}\n" for package in installed)
        (self.folder / "installed").write_text(lines, encoding="utf-8")
        self.tool("dpkg-query", f"#!/bin/sh\ncat {self.folder}/installed\nexit 1\n")

    def setup(self, *arguments):
        env = {"PATH": str(self.bin), "CALLS": str(self.calls)}
        return run([self.bin / "bash", SCRIPTS / "setup", *arguments], env)

    def called(self):
        return self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []

    def all_packages(self):
        """What a bare machine would install."""
        self.have([])
        self.setup("--check", "--bench", "--compat")
        packages = self.called()[-1].split("--no-install-recommends ")[1].split()
        self.calls.unlink()
        return packages

    def test_installs_everything_on_a_bare_machine(self):
        packages = self.all_packages()
        for package in ["g++", "cmake", "ninja-build", "ccache", "libboost1.81-dev", "librocksdb-dev", "libtbb-dev",
                        "libprotobuf-dev", "protobuf-compiler", "libfmt-dev", "libgtest-dev", "clang-tidy-19",
                        "clang-format-19", "libclang-rt-19-dev", "valgrind", "python3-kafka"]:
            self.assertIn(package, packages)
        self.assertNotIn("libboost-dev", packages)

    def test_installs_only_what_is_missing_in_one_line(self):
        packages = self.all_packages()
        self.have([package for package in packages if package not in ("cmake", "libtbb-dev")])
        result = self.setup("--check", "--bench", "--compat")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.called(), ["apt-get -qq --no-remove update",
                                         "apt-get -qq --no-remove install -y --no-install-recommends cmake libtbb-dev"])
        self.assertIn("installing cmake libtbb-dev", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_does_nothing_when_nothing_is_missing(self):
        self.have(self.all_packages())
        result = self.setup("--check", "--bench", "--compat")
        self.assertEqual((result.returncode, result.stdout, result.stderr, self.called()), (0, "", "", []))

    def test_a_package_with_a_longer_name_is_not_the_package(self):
        packages = self.all_packages()
        self.have([package for package in packages if package != "cmake"] + ["cmake-data"])
        self.setup("--check", "--bench", "--compat")
        self.assertTrue(self.called()[-1].endswith(" cmake"))

    def test_uses_sudo_only_when_not_root(self):
        self.have([])
        self.be_user(1000)
        self.tool("sudo", NOTE_CALL + 'exec "$@"\n')
        self.assertEqual(self.setup().returncode, 0)
        self.assertTrue(self.called()[0].startswith("sudo env "), self.called())

    def test_without_root_and_sudo_says_what_to_run(self):
        self.have([])
        self.be_user(1000)
        result = self.setup()
        self.assertEqual((result.returncode, self.called()), (1, []))
        self.assertIn("apt-get install g++ cmake", result.stderr)

    def test_explains_the_other_boost_and_changes_nothing(self):
        packages = self.all_packages()
        self.have([package for package in packages if package != "libboost1.81-dev"] + ["libboost1.74-dev"])
        result = self.setup()
        self.assertEqual((result.returncode, self.called()), (1, []))
        self.assertIn("libboost1.74-dev is installed", result.stderr)
        self.assertIn("sudo apt-get install libboost1.81-dev", result.stderr)

    def test_says_when_apt_failed(self):
        self.have([])
        self.tool("apt-get", "#!/bin/sh\necho 'E: no network' >&2\nexit 100\n")
        result = self.setup()
        self.assertEqual(result.returncode, 1)
        self.assertIn("E: no network", result.stderr)
        self.assertIn("Debian 12", result.stderr)

    def test_on_another_system_names_the_packages_and_goes_on(self):
        result = self.setup()
        self.assertEqual((result.returncode, self.called()), (0, []))
        self.assertIn("librocksdb-dev", result.stderr)


class Arguments(unittest.TestCase):
    def test_every_script_has_help(self):
        # The arguments of scripts/bench are those of its program, --help too.
        for script in ["setup", "demo", "test", "check"]:
            result = run([SCRIPTS / script, "--help"])
            self.assertEqual(result.returncode, 0, script)
            self.assertIn(f"scripts/{script}", result.stdout)

    def test_unknown_options_are_usage_errors(self):
        for script in ["setup", "demo", "test", "check"]:
            result = run([SCRIPTS / script, "--nonesuch"])
            self.assertEqual((result.returncode, result.stdout), (2, ""), script)
            self.assertIn("--nonesuch", result.stderr)

    def test_demo_names_a_file_that_is_missing_or_no_file(self):
        for path, reason in [("/no/such/file", "no such file"), ("/usr", "not a readable file")]:
            result = run([SCRIPTS / "demo", path])
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertEqual(result.stderr, f"demo: {path}: {reason}. Give the path of a text: scripts/demo FILE\n")

    def test_demo_takes_one_file(self):
        self.assertEqual(run([SCRIPTS / "demo", "/etc/passwd", "/etc/group"]).returncode, 2)


if __name__ == "__main__":
    os.environ.pop("WEIR_DATA", None)
    unittest.main()
