"""Lets SGLang serve on a machine without a GPU. Python loads this file by its name when its folder is on PYTHONPATH.

SGLang imports its CUDA kernels by name even where none of them runs: attention is torch's and transfers are Mooncake's
own. So the name is there, and whatever is called of it raises. And the Mooncake sender is kept on its plain path, since
the other one copies page indices through pinned memory.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types

KERNELS = "sgl_kernel"
SENDER = "sglang.srt.disaggregation.mooncake.conn"
PINNED = "supports_host_tensor_indices"


class Absent:
    """A kernel that is not here: it can be named and passed on, not called."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, part):
        if part.startswith("__"):
            raise AttributeError(part)
        return Absent(f"{self.__name__}.{part}")

    def __call__(self, *_args, **_named):
        raise NotImplementedError(f"{self.__name__} needs a GPU")


class AbsentModule(types.ModuleType):
    __version__ = "0.4.6.post1"
    __path__ = ()

    def __getattr__(self, part):
        if part.startswith("__"):
            raise AttributeError(part)
        return Absent(f"{self.__name__}.{part}")


class Kernels(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".", 1)[0] != KERNELS:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return AbsentModule(spec.name)

    def exec_module(self, module):
        """Nothing to run."""


class PlainSender(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the sender as it is, then clears the one class attribute."""

    def __init__(self):
        self.loading = False
        self.inner = None

    def find_spec(self, name, path=None, target=None):
        if name != SENDER or self.loading:
            return None
        self.loading = True
        try:
            found = importlib.util.find_spec(name)
        finally:
            self.loading = False
        if found is None or found.loader is None:
            return None
        self.inner = found.loader
        found.loader = self
        return found

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        self.inner.exec_module(module)
        for kind in list(vars(module).values()):
            if isinstance(kind, type) and getattr(kind, PINNED, False):
                setattr(kind, PINNED, False)


sys.meta_path[:0] = [Kernels(), PlainSender()]
