#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of symbols that a package of custom operators exports.

    make_exports.py --abi data/abi --generation A3 --out x.map

Custom operators are built for one generation: what it lacks, its library has
no symbol of, and a client that asks with dlsym sees that.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import manifest  # noqa: E402 (needs the line above)

# In the manifest, so that clients compile; no source says what they write.
NOT_SIMULATED = {"IndexerCompressEpilogV2"}


def exports(abi, generation):
    return [phase["name"] for o in abi.operators()
            if o.get("package") == "custom" and generation in o["soc"]
            and o["name"] not in NOT_SIMULATED for phase in manifest.phases(o)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--abi", required=True)
    parser.add_argument("--generation", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    args = parser.parse_args()
    names = exports(manifest.Manifest(args.abi), args.generation)
    lines = "".join(f"    {name};\n" for name in names)
    args.out.write_text(f"{{\n  global:\n{lines}  local:\n    *;\n}};\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
