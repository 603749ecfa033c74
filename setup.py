"""The compiled part of Headwater: it cleans most HTML in a ninth of the time.

Where there is no C compiler the installation goes on without it, and nh3 cleans everything. The rest is in
pyproject.toml.
"""

from setuptools import Extension, setup

TIDY = Extension(
    "headwater.text.tidy", ["src/headwater/text/tidy.pyx"], depends=["src/headwater/text/tidy_words.pxi"], optional=True
)

setup(ext_modules=[TIDY])
