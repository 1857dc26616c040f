"""Packaging of pu-shift. See README.md for how to install it."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(
    r'^__version__ = "(.+)"$',
    (HERE / "pu_shift" / "_version.py").read_text(encoding="utf-8"),
    re.MULTILINE,
).group(1)

# The last release; newer Python and NumPy are served by pu_shift._chainer. An extra, because pip
# cannot build it with nothing set: see docs/install.md.
CHAINER = "chainer==7.8.1"
# Before 14.0.1 a file could run code when it was read (CVE-2023-47248).
PYARROW = "pyarrow>=14.0.1"
# What the tests need besides Chainer; mypy and ruff too.
TESTS = [
    # 2.2 is the first whose second device is kept by ones_like and its kind.
    "array-api-strict>=2.2",
    "distributed>=2023.3",
    "hypothesis>=6.80",
    "mypy>=1.11",
    PYARROW,
    "pytest>=7.4",
    "pytest-cov>=4.1",
    "pytest-timeout>=2.2",
    "pytest-xdist>=3.3",
    "pyyaml>=6.0",
    # Pinned: another release may format or lint differently.
    "ruff==0.17.4",
    # Drives Chromium, where there is one, through the report's page.
    "selenium>=4.11",
]

setup(
    name="pu-shift",
    version=VERSION,
    description=(
        "Positive-unlabeled classification under class prior shift and asymmetric error "
        "(Charoenphakdee & Sugiyama, 2019): the reference implementation"
    ),
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="The pu-shift authors",
    keywords=[
        "positive-unlabeled learning",
        "PU learning",
        "class prior shift",
        "label shift",
        "cost-sensitive learning",
        "density ratio estimation",
        "scikit-learn",
        "Chainer",
    ],
    license="MIT",
    license_files=["LICENSE"],
    packages=[
        *find_packages(include=["pu_shift", "pu_shift.*"]),
        "pu_shift.paper_tables",
        "pu_shift.reference",
    ],
    py_modules=["pu_shift_start"],
    # These lie at the top, where a reader looks for them.
    package_dir={
        "pu_shift.paper_tables": "paper_tables",
        "pu_shift.reference": "results/reference",
    },
    package_data={
        "pu_shift": ["py.typed"],
        "pu_shift._pages": ["*.js"],
        "pu_shift.explorer": ["assets/*"],
        "pu_shift.report": ["assets/*"],
        "pu_shift.paper_tables": ["*.csv"],
        # What `pu-shift verify` compares with: 80 kB in the wheel.
        "pu_shift.reference": ["table*/trials.csv", "table*/run.json"],
    },
    python_requires=">=3.10,<3.16",
    install_requires=[
        # 1.22 is the first with wheels for Python 3.10; a NumPy 3 is unknown to us.
        "numpy>=1.22,<3",
        # 1.8 is the first built for NumPy 1.22's ABI on every interpreter served.
        "scipy>=1.8,<2",
        "pandas>=1.4,<4",
        "matplotlib>=3.5,<4",
        # 1.2 has the parameter validation that the estimators rely on.
        "scikit-learn>=1.2,<2",
        # 1.4 is the first that yields results as they finish.
        "joblib>=1.4,<2",
        "threadpoolctl>=3.1,<4",
        # One set of functions for NumPy 1, NumPy 2, CuPy and array-api-strict.
        "array-api-compat>=1.6,<2",
        "tqdm>=4.62,<5",
        "jinja2>=3.1,<4",
        "pooch>=1.7,<2",
    ],
    entry_points={"console_scripts": ["pu-shift = pu_shift_start:main"]},
    extras_require={
        # For risk minimisation: RiskMinimizationClassifier, the paper's tables.
        "chainer": [CHAINER],
        # CuPy 12.3 serves NumPy 1.22, 13 is the first for NumPy 2; 14 needs it.
        "gpu": ["cupy-cuda12x>=12.3,<15"],
        "parquet": [PYARROW],
        "cluster": ["distributed>=2023.3", PYARROW],
        # For `make site`. Sphinx 8.1 is the last for Python 3.10.
        "docs": [
            "furo>=2024.8.6",
            "myst-parser>=4,<6",
            "numpydoc>=1.8,<2",
            "sphinx>=8.1,<10",
            "sphinx-copybutton>=0.5.2",
            "sphinx-gallery>=0.19",
            # MathJax 3.2.2 itself, so that no page needs a network.
            "sphinx-mathjax-offline==0.0.2",
        ],
        "dev": [CHAINER, *TESTS],
        # The same without Chainer, for `make test-ratio`.
        "test": TESTS,
    },
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Environment :: GPU :: NVIDIA CUDA",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Natural Language :: English",
        "Operating System :: POSIX",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Programming Language :: Python :: 3.15",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Scientific/Engineering :: Mathematics",
        "Typing :: Typed",
    ],
)
