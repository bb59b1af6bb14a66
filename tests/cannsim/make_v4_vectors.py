#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes v4_vectors.jsonl: operators of DeepSeek-V4 by numpy, as
make_vectors.py does for the others.

    make_v4_vectors.py > v4_vectors.jsonl        (needs numpy; the tests do not)

A case names the generations that it holds for. Quantised results are expected
as codes, which have to be equal.
"""

import sys

import v4_attention_cases
import v4_cases
import v4_quant_cases


def main():
    for part in (v4_cases.PARTS + v4_quant_cases.PARTS
                 + v4_attention_cases.PARTS):
        part()
    return 0


if __name__ == "__main__":
    sys.exit(main())
