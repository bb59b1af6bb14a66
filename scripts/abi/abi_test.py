#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ABI check refuses wrong headers; headers compile alone, in C and C++.

    abi_test.py --abi DIR --headers DIR --aclnnop DIR --api DIR --cc CC --cxx CXX
"""

import argparse
import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_api_check  # noqa: E402 (needs the line above)
import make_check  # noqa: E402 (needs the line above)
import manifest  # noqa: E402

# (file, what is there, what a slip of the hand would make of it)
MUTATIONS = [
    ("acl/acl_base.h", "ACL_BF16 = 27", "ACL_BF16 = 28"),
    ("acl/error_codes.h", "ACL_ERROR_RT_CONTEXT_NULL 107002",
     "ACL_ERROR_RT_CONTEXT_NULL 107003"),
    ("acl/acl_rt.h", "aclrtMalloc(void** devPtr, size_t size,",
     "aclrtMalloc(void** devPtr, uint32_t size,"),
    ("acl/acl_rt.h", "uint32_t id;\n  aclrtMemLocationType type;",
     "aclrtMemLocationType type;\n  uint32_t id;"),
    ("acl/acl_rt.h", "aclError aclrtFree(void* devPtr);", ""),
    ("hccl/hccl_types.h", "#define HCCL_ROOT_INFO_BYTES 4108",
     "#define HCCL_ROOT_INFO_BYTES 4096"),
    ("aclnn/acl_meta.h", "typedef int32_t aclnnStatus;",
     "typedef int64_t aclnnStatus;"),
    ("aclnnop/aclnn_matmul.h", "const aclTensor* self,",
     "const aclScalar* self,"),
]

# The same for our own declarations in src/cann_api/abi.
API_MUTATIONS = [
    ("types.h", "ACL_BF16 = 27", "ACL_BF16 = 28"),
    ("types.h", "using aclnnStatus = int32_t;", "using aclnnStatus = long;"),
    ("codes.h", "X(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, 507046)",
     "X(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, 507047)"),
    ("functions.h", "aclError(void**, size_t, aclrtMemMallocPolicy)",
     "aclError(void**, uint32_t, aclrtMemMallocPolicy)"),
    ("operators.h", "X(Neg, (const aclTensor*, aclTensor*))",
     "X(Neg, (const aclTensor*, aclTensor*, bool))"),
    ("operators.h", "X(Neg, ", "X(NegNoSuchThing, "),
]


class Compiler:
    def __init__(self, args, scratch):
        self.cc = shlex.split(args.cc)
        self.cxx = shlex.split(args.cxx)
        self.scratch = scratch

    def accepts(self, text, language, folder):
        """Whether it compiles, and what the compiler said."""
        command = self.cxx if language == "c++" else self.cc
        standard = "-std=c++17" if language == "c++" else "-std=c11"
        run = subprocess.run(
            command + [standard, "-Wall", "-Wextra", "-Werror",
                       "-fsyntax-only", "-I", str(folder), "-x", language, "-"],
            input=text, capture_output=True, text=True, check=False)
        return run.returncode == 0, run.stderr


def toolkit(args, scratch):
    """A copy of all headers in one tree, as they are installed."""
    tree = scratch / "include"
    shutil.copytree(args.headers, tree)
    shutil.copytree(args.aclnnop, tree / "aclnnop", dirs_exist_ok=True)
    return tree


def test_mutations(compiler, args, tree):
    text = make_check.generate(manifest.Manifest(args.abi), manifest.FILES)
    accepted, why = compiler.accepts(text, "c++", tree)
    if not accepted:
        return [f"the right headers are refused:\n{why[:2000]}"]
    faults = []
    for name, right, wrong in MUTATIONS:
        path = tree / name
        good = path.read_text()
        if right not in good:
            faults.append(f"{name}: '{right}' is not there any more")
            continue
        path.write_text(good.replace(right, wrong, 1))
        accepted, why = compiler.accepts(text, "c++", tree)
        path.write_text(good)
        if accepted:
            faults.append(f"{name}: '{wrong}' was not noticed")
    return faults


def test_api(compiler, args, scratch):
    """Our declarations fit, and a slip in them does not."""
    tree = scratch / "api"
    folder = tree / "cann_api" / "abi"
    shutil.copytree(args.api, folder)
    abi = manifest.Manifest(args.abi)

    def accepts():
        texts = {name: (folder / name).read_text()
                 for name in make_api_check.HEADERS}
        try:
            return compiler.accepts(make_api_check.generate(abi, texts), "c++",
                                    tree)
        except make_api_check.Unknown as unknown:
            return False, str(unknown)

    accepted, why = accepts()
    if not accepted:
        return [f"our declarations are refused:\n{why[:2000]}"]
    faults = []
    for name, right, wrong in API_MUTATIONS:
        path = folder / name
        good = path.read_text()
        if right not in good:
            faults.append(f"{name}: '{right}' is not there any more")
            continue
        path.write_text(good.replace(right, wrong, 1))
        if accepts()[0]:
            faults.append(f"{name}: '{wrong}' was not noticed")
        path.write_text(good)
    return faults


def test_headers(compiler, tree):
    """Each header first, then all together, in both languages."""
    names = sorted(p.relative_to(tree).as_posix() for p in tree.rglob("*.h"))
    jobs = [(f'#include "{name}"\n#include "{name}"\n', language, name)
            for name in names for language in ("c", "c++")]
    everything = "".join(f'#include "{name}"\n' for name in names)
    jobs += [(everything, language, "all") for language in ("c", "c++")]
    # The one operator that a client declares itself, with another const.
    jobs.append((
        '#include "aclnnop/aclnn_matmul.h"\n'
        'extern "C" aclnnStatus aclnnRotaryPositionEmbeddingGetWorkspaceSize('
        "const aclTensor*, const aclTensor*, const aclTensor*, int64_t, "
        "const aclTensor*, uint64_t*, aclOpExecutor**);\n", "c++", "rope"))

    def run(job):
        accepted, why = compiler.accepts(job[0], job[1], tree)
        return None if accepted else f"{job[2]} in {job[1]}: {why[:600]}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [fault for fault in pool.map(run, jobs) if fault]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("--abi", "--headers", "--aclnnop", "--api", "--cc",
                 "--cxx"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        compiler = Compiler(args, scratch)
        tree = toolkit(args, scratch)
        faults = test_headers(compiler, tree)
        faults += test_mutations(compiler, args, tree)
        faults += test_api(compiler, args, scratch)
    for fault in faults:
        print(f"abi_test: {fault}")
    print(f"abi_test: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
