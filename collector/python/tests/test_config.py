"""Configuration, library and package, without torch."""

import ast
import json
import os
import pathlib
import platform
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import packager
import packager.project
import vramscope
from vramscope import _build, _config, _file, _library, _prebuilt, _share, _state, _torch


packs = unittest.skipIf(sys.version_info < (3, 11), "before 3.11, no standard module reads pyproject.toml")


def _version():
    return packager.project.read().version


class ConfigTest(unittest.TestCase):
    def test_invalid_arguments_are_refused_in_one_line(self):
        cases = [
            ({"mode": "all"}, "budget"),
            ({"stacks": "c++"}, "python"),
            ({"context": "none"}, "alloc"),
            ({"budget": 0}, "share"),
            ({"budget": "much"}, "share"),
            ({"history": 3}, "at least 100"),
            ({"out": "x.txt"}, "must end with .vramscope, not x.txt"),
        ]
        for options, word in cases:
            with self.subTest(options=options), self.assertRaises(_config.ConfigError) as caught:
                _config.Config(**options)
            self.assertIn(word, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))

    def test_an_unknown_option_is_named_with_the_function(self):
        cases = [
            (lambda: vramscope.attach(foo=1), "attach() has no option foo. Its options: to, out, mode"),
            (lambda: vramscope.attach(stack="all"), "attach() has no option stack. Did you mean stacks?"),
            (lambda: vramscope.record("a.vramscope", moed="budget"), "record() has no option moed. Did you mean mode?"),
        ]
        for call, wanted in cases:
            with self.subTest(wanted=wanted), self.assertRaises(TypeError) as caught:
                call()
            self.assertIn(wanted, str(caught.exception))

    def test_variables_equal_arguments(self):
        self.assertIsNone(_config.from_environment({"VRAMSCOPE_MODE": "budget"}))
        # No server of the person who runs the tests is found there.
        state = {"XDG_STATE_HOME": os.path.abspath("nowhere")}
        wanted = {"VRAMSCOPE_TO": "1", "VRAMSCOPE_STACKS": "none", "VRAMSCOPE_BUDGET": "0.02"}
        config = _config.from_environment(state | wanted)
        self.assertEqual((config.to, config.out, config.stacks), ("http://127.0.0.1:7070", None, None))
        self.assertEqual((config.budget, config.mode), (0.02, "auto"))
        self.assertEqual(_config.Config(out="a.vramscope").to, None)
        with mock.patch.dict(os.environ, {"VRAMSCOPE_TOKEN": "sesame"}):
            self.assertEqual([_config.Config().token, _config.Config(token="mine").token], ["sesame", "mine"])
        with mock.patch.dict(os.environ, {"VRAMSCOPE_CA_FILE": "/etc/ca.pem"}):
            self.assertEqual([_config.Config().ca_file, _config.Config(ca_file="/a").ca_file], ["/etc/ca.pem", "/a"])
        with mock.patch.dict(os.environ, {"VRAMSCOPE_CA_FILE": ""}):
            self.assertIsNone(_config.Config().ca_file)
        # The program may change its folder before CUDA is used.
        self.assertEqual(_config.Config(ca_file="ca.pem").ca_file, os.path.abspath("ca.pem"))

    def test_every_process_of_a_job_has_its_own_file(self):
        cases = [
            (("run.vramscope", None, 1), "run.vramscope"),
            (("run.vramscope", 0, 1), "run.vramscope"),
            (("/a.b/run.vramscope", 3, 8), "/a.b/run.rank3.vramscope"),
            (("run-{rank}-{pid}.vramscope", 3, 8), "run-3-77.vramscope"),
        ]
        for arguments, want in cases:
            self.assertEqual(_config.out_of_rank(*arguments, pid=77), want)

    def test_a_file_that_another_process_writes_is_not_used(self):
        code = "import sys; sys.path.insert(0, sys.argv[1])\nfrom vramscope import _file\n"
        code += "claim = _file.Claim(sys.argv[2]); print(claim.path, flush=True); sys.stdin.read()"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.vramscope")
            command = [sys.executable, "-c", code, str(HERE.parent), path]
            other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            with other:
                self.assertEqual(other.stdout.readline(), path + "\n")
                mine = _file.Claim(path)
                self.assertEqual(mine.path, os.path.join(folder, f"run.pid{os.getpid()}.vramscope"))
                mine.release()
                other.kill()
            again = _file.Claim(path)
            self.assertEqual(again.path, path)
            again.release()
        # A pipe must not block, and an unwritable file is reported by the library.
        for path in ("/dev/null", "/nowhere/run.vramscope"):
            self.assertEqual(_file.Claim(path).path, path)

    def test_launchers_are_known(self):
        cases = [
            ({}, ("train.py", None, 1)),
            ({"RANK": "2", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "abc"}, ("abc", 2, 4)),
            (
                {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "n1", "MASTER_PORT": "9"},
                ("n1:9", 0, 2),
            ),
            ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "5"}, ("slurm 5", 1, 2)),
        ]
        for environ, want in cases:
            self.assertEqual(_torch.identity(environ, ["/x/train.py"]), want)


class LibraryTest(unittest.TestCase):
    def test_it_is_searched_in_order(self):
        package = pathlib.Path("/site/vramscope")
        self.assertEqual(_library.candidates("a.so", {"VRAMSCOPE_LIBRARY": "b.so"}), [pathlib.Path("a.so")])
        self.assertEqual(_library.candidates(None, {"VRAMSCOPE_LIBRARY": "b.so"}), [pathlib.Path("b.so")])
        self.assertEqual(_library.candidates(None, {}, package), [package / _library.NAME])
        with self.assertRaisesRegex(_library.LibraryError, "cargo build"):
            _library.find("/nowhere/lib.so")

    def test_segments_become_columns(self):
        block = {"address": 0x1000, "size": 512, "requested_size": 100, "state": "active_allocated"}
        free = {"address": 0x1200, "size": 512, "requested_size": 0, "state": "inactive"}
        segment = {"device": 1, "address": 0x1000, "total_size": 1024, "stream": -3, "segment_type": "small"}
        segment.update(segment_pool_id=(0, 2), is_expandable=True, blocks=[block, free])
        found = _state.by_device([segment], [0, 1])
        columns = _state.columns(found[1])
        self.assertEqual((found[0], list(columns.flags), list(columns.stream)), ([], [3], [-3]))
        self.assertEqual((list(columns.pool1), list(columns.blocks_each)), ([2], [2]))
        self.assertEqual((list(columns.block_state), list(columns.block_requested)), ([0, 2], [100, 0]))


class PackageTest(unittest.TestCase):
    def test_the_oldest_python_can_parse_every_file(self):
        files = sorted(HERE.parent.rglob("*.py"))
        self.assertGreater(len(files), 20)
        for path in files:
            with self.subTest(path=path.name):
                ast.parse(path.read_text(encoding="utf-8"), path.name, feature_version=(3, 9))

    def test_the_tracker_is_compiled_again_when_any_of_its_files_changes(self):
        torch = mock.Mock(__version__="9.9.9")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for path in _build.FOLDER.iterdir():
                (folder / path.name).write_bytes(path.read_bytes())
            with mock.patch.object(_build, "FOLDER", folder):
                keys = {_build._key(torch)}
                for path in sorted(folder.iterdir()):
                    path.write_text(path.read_text() + "\n")
                    keys.add(_build._key(torch))
                self.assertEqual(len(keys), 1 + len(list(folder.iterdir())))

    @packs
    def test_the_wheel_has_all_that_is_compiled(self):
        with tempfile.TemporaryDirectory() as folder:
            empty = pathlib.Path(folder) / "empty"
            empty.write_bytes(b"")
            given = dict.fromkeys(("VRAMSCOPE_LIBRARY", "VRAMSCOPE_PROGRAM"), str(empty))
            with mock.patch.dict(os.environ, {**given, "VRAMSCOPE_TRACKERS": ""}):
                made = packager.build_wheel(folder)
            with zipfile.ZipFile(pathlib.Path(folder) / made) as wheel:
                names = set(wheel.namelist())
        sources = {f"vramscope/tracker/{path.name}" for path in _build.FOLDER.iterdir()}
        self.assertGreater(len(sources), 5)
        self.assertLessEqual(sources | {"vramscope/_file.py", "vramscope.pth"}, names)

    @packs
    def test_the_sources_are_a_workspace_of_their_own(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / packager.build_sdist(folder)
            again = path.read_bytes()
            packager.build_sdist(folder)
            self.assertEqual(path.read_bytes(), again)
            with tarfile.open(path) as tar:
                names = set(tar.getnames())
                base = f"vramscope-{_version()}/"
                text = tar.extractfile(base + "Cargo.toml").read().decode()
                pyproject = tar.extractfile(base + "pyproject.toml").read().decode()
                about = tar.extractfile(base + "PKG-INFO").read().decode()
        members = text.partition("members = [")[2].partition("]")[0].replace('"', "").split(", ")
        self.assertGreater(len(members), 5)
        for member in members:
            self.assertIn(f"{base}{member}/Cargo.toml", names)
        self.assertIn('backend-path = ["collector/python"]', pyproject)
        self.assertIn("\nName: vramscope\n", about)
        for name in ("Cargo.lock", "LICENSE-MIT", "collector/program/build/main.rs", "web/static/index.html", "collector/python/README.md"):
            self.assertIn(base + name, names)
        self.assertFalse([name for name in names if "__pycache__" in name or "/tests/cases/" in name])

    @packs
    def test_the_version_is_the_same_everywhere(self):
        cargo = (HERE.parent.parent.parent / "Cargo.toml").read_text()
        self.assertEqual(cargo.partition('\nversion = "')[2].partition('"')[0], _version())
        self.assertEqual(vramscope.__version__, _version())

    def test_importing_does_nothing(self):
        code = "import sys, threading, vramscope; vramscope.mark('a'); vramscope.step(); vramscope.detach()\n"
        code += "print('torch' in sys.modules, threading.active_count())"
        found = subprocess.run(
            [sys.executable, "-c", code], cwd=HERE.parent, capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual(found, "False 1\n")

    def test_the_variable_alone_loads_only_the_import_hook(self):
        line = (HERE.parent / "vramscope.pth").read_text()
        self.assertEqual(line.count("\n"), 1)
        self.assertTrue(line.startswith("import "))
        for variables, want in (({}, "[]"), ({"VRAMSCOPE_TO": "1"}, "['vramscope', 'vramscope._environment', 'vramscope._hook']")):
            code = f"import sys\n{line}\nprint([name for name in sorted(sys.modules) if 'vramscope' in name])"
            found = subprocess.run(
                [sys.executable, "-c", code],
                cwd=HERE.parent,
                env={**{k: v for k, v in os.environ.items() if not k.startswith("VRAMSCOPE_")}, **variables},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            self.assertEqual(found, want)

    def test_torch_cuda_is_waited_for_and_found_as_without_the_hook(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "torch" / "cuda"
            package.mkdir(parents=True)
            (package.parent / "__init__.py").write_text("")
            (package / "__init__.py").write_text("def is_initialized(): return True\ndef _lazy_call(f): f()\n")
            code = "import sys; sys.path.insert(0, sys.argv[1])\nfrom vramscope import _hook\n"
            code += "_hook.when_torch_cuda_is_imported(lambda m: print('there', m.__name__, m.is_initialized()))\n"
            code += "import torch; print('torch'); import torch.cuda\n"
            code += "print(type(torch.cuda.__loader__).__name__, any('Finder' == type(f).__name__ for f in sys.meta_path))"
            found = subprocess.run(
                [sys.executable, "-c", code, folder], cwd=HERE.parent, capture_output=True, text=True, check=True
            ).stdout.split("\n")
            self.assertEqual(found[:3], ["torch", "there torch.cuda True", "SourceFileLoader False"])

    def test_a_failed_build_is_cached_and_reported_unless_asked_for(self):
        torch = mock.Mock(__version__="9.9.9+x", __file__="/nowhere/torch/__init__.py")
        torch._C._GLIBCXX_USE_CXX11_ABI = True
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch.dict(os.environ, {"VRAMSCOPE_CACHE": folder, "CUDA_HOME": ""}), mock.patch.object(
                _build, "compiler", return_value=None
            ) as compiler:
                for _ in range(2):
                    with self.assertRaisesRegex(_build.BuildError, "no C\\+\\+ compiler"):
                        _build.build(torch)
                self.assertEqual(compiler.call_count, 1)
                with self.assertRaisesRegex(_build.BuildError, "not every event"):
                    _build.build(torch, is_asked_for=True)
                self.assertEqual(compiler.call_count, 2)


class PrebuiltTest(unittest.TestCase):
    """A tracker is used for exactly the build that it was compiled for."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        include = self.folder / "torch" / "include"
        for name in _prebuilt.HEADERS:
            (include / name).parent.mkdir(parents=True, exist_ok=True)
            (include / name).write_text(name)
        self.header = include / _prebuilt.HEADERS[0]
        self.torch = mock.Mock(__version__="2.6.0+cu124", __file__=str(self.folder / "torch" / "__init__.py"))
        self.torch.version = mock.Mock(git_version="abc", cuda="12.4")
        self.torch._C._GLIBCXX_USE_CXX11_ABI = False
        build = {"version": "2.6.0", "abi": 0, "headers": _prebuilt.headers(include), "file": "tracker.so"}
        self.index = {"machine": platform.machine(), "sources": _prebuilt.sources(), "builds": {"abc": build}}

    def fits(self):
        return _prebuilt._fits(self.torch, self.index)

    def test_an_official_release_has_one(self):
        self.assertEqual(self.fits(), "tracker.so")
        self.torch.__version__ = "2.6.0"
        self.assertEqual(self.fits(), "tracker.so")

    def test_no_other_build_has_one(self):
        for version in ("2.6.1+cu124", "2.6.0a0+ecf3bae40a.nv25.01", "2.6.0+rocm6.2", "2.6.0+cpu", "2.6.0+cu124.patched", "2.6.0.dev1"):
            with self.subTest(version=version), mock.patch.object(self.torch, "__version__", version):
                self.assertIsNone(self.fits())
        for name, value in (("git_version", "abd"), ("git_version", None), ("cuda", None)):
            with self.subTest(name=name), mock.patch.object(self.torch.version, name, value):
                self.assertIsNone(self.fits())
        with mock.patch.object(self.torch._C, "_GLIBCXX_USE_CXX11_ABI", True):
            self.assertIsNone(self.fits())
        for name in ("machine", "sources"):
            with self.subTest(name=name), mock.patch.dict(self.index, {name: "other"}):
                self.assertIsNone(self.fits())
        self.header.write_text("changed")
        self.assertIsNone(self.fits())
        self.header.unlink()
        self.assertIsNone(self.fits())

    def test_what_is_missing_or_damaged_is_compiled_instead(self):
        with mock.patch.object(_prebuilt, "FOLDER", self.folder):
            self.assertIsNone(_prebuilt.find(self.torch))
            (self.folder / _prebuilt.INDEX).write_text("{")
            self.assertIsNone(_prebuilt.find(self.torch))
            (self.folder / _prebuilt.INDEX).write_text(json.dumps(self.index))
            (self.folder / "tracker.so").write_text("no library")
            self.assertIsNone(_prebuilt.find(self.torch))


class ProgramTest(unittest.TestCase):
    def test_the_program_of_this_python_comes_first(self):
        places = _share.candidates(None, {"PATH": "/nowhere"}, pathlib.Path("/site/vramscope"))
        self.assertEqual(places[0], pathlib.Path(sysconfig.get_path("scripts")) / _share.NAME)
        self.assertEqual(places[-1], pathlib.Path("/site/bin") / _share.NAME)
        self.assertEqual(_share.candidates(None, {"VRAMSCOPE_PROGRAM": "/a"}), [pathlib.Path("/a")])

    def test_other_platforms_say_what_they_can_not_do(self):
        self.assertIsNone(_library.unsupported("linux"))
        self.assertIn("MPS", _library.unsupported("darwin"))
        self.assertIn("Linux with CUDA only", _library.unsupported("win32"))


if __name__ == "__main__":
    unittest.main()
