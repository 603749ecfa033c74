"""The compiled parts of Headwater: each module that has C types in a .pxd file beside it.

Where there is no C compiler the installation goes on without them: the same sources then run as Python, only slowly,
and nh3 cleans all HTML. The rest is in pyproject.toml.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCES = Path("src")
# What Cython would put into each module: memory views and the like. Compiling it once halves the time.
SHARED = "headwater._cython"
# Floats are added and multiplied one by one, as Python does it, on every machine.
C_OPTIONS = ["-O3", "-g0", "-ffp-contract=off"]
DIRECTIVES = {
    "language_level": 3,
    # C types come from the .pxd files; annotations are for mypy.
    "annotation_typing": False,
    "infer_types": True,
    # Rows are made large enough before the loops; tests run the same loops uncompiled, where Python checks.
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
}


def extension(name: str, *sources: str) -> Extension:
    return Extension(name, list(sources), extra_compile_args=C_OPTIONS, extra_link_args=["-Wl,-s"])  # without symbols


def compiled_modules() -> list[Extension]:
    headers = sorted(SOURCES.rglob("*.pxd"))
    names = [".".join(header.relative_to(SOURCES).with_suffix("").parts) for header in headers]
    modules: list[Extension] = cythonize(
        [
            extension(SHARED),
            *(extension(name, str(header.with_suffix(".py"))) for name, header in zip(names, headers, strict=True)),
        ],
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        build_dir="build",
    )
    for module in modules:
        module.optional = True  # which Cython does not pass on
    return modules


TIDY = extension("headwater.text.tidy", "src/headwater/text/tidy.pyx")
TIDY.optional = True
TIDY.depends = [str(part) for part in sorted(SOURCES.rglob("*.pxi"))]

setup(ext_modules=[*compiled_modules(), TIDY], options={"build_ext": {"parallel": os.cpu_count()}})
