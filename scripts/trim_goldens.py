#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies golden safetensors files without the tensors that cost the most room.

  trim_goldens.py FROM TO      both folders; FROM holds golden_*.safetensors

Kept is everything that a limit of the golden tests needs for at least one
prompt of each checkpoint; dropped is (see DROPPED for the reasons):
every `hidden` of exact mode, `hidden` of prompts beyond 130 tokens, the logits
of all positions of those prompts (their 24 decode steps and MTP steps stay),
`mtp_logits_all`, `index_scores.*`. The tests run on the full files too: set
BELAY_GOLDEN_DIR to their folder.
"""
import glob
import json
import os
import re
import struct
import sys

DROPPED = (
    # (file, tensor, why)
    (r"_exact\.", r"hidden$", "logits at 1e-4 already hold exact mode"),
    (r"_official\.", r"p(245|300)\.hidden$", "layers are forced on 7 and 130"),
    (r".", r"p(245|300)\.logits_all$", "decode steps read the whole prompt"),
    (r".", r"mtp_logits_all$", "mtp_logits and the decode steps are held"),
    (r".", r"index_scores\.\d+$", "index_topk and index_margin are held"),
)


def dropped(file, tensor):
    return any(re.search(f, file) and re.search(t, tensor)
               for f, t, _ in DROPPED)


def read(path):
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        head = json.loads(f.read(n))
        body = f.read()
    head.pop("__metadata__", None)
    return head, body


def trim(source, target):
    head, body = read(source)
    name = os.path.basename(source)
    kept, parts, place = {}, [], 0
    for tensor, entry in sorted(head.items(),
                                key=lambda kv: kv[1]["data_offsets"]):
        if dropped(name, tensor):
            continue
        begin, end = entry["data_offsets"]
        parts.append(body[begin:end])
        kept[tensor] = dict(entry, data_offsets=[place, place + end - begin])
        place += end - begin
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
    print(f"{name}: {len(head)} -> {len(kept)} tensors, "
          f"{os.path.getsize(source)} -> {os.path.getsize(target)} bytes")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for source in sorted(glob.glob(os.path.join(sys.argv[1],
                                                "golden_*.safetensors"))):
        trim(source, os.path.join(sys.argv[2], os.path.basename(source)))


main()
