"""Judges layout files by the JSON schema: SCHEMA ROOT. Says which right files it refuses and which wrong ones it takes.

Files that are no YAML, or in which a key stands twice, no schema ever sees.
"""
import json
import pathlib
import re
import sys

import fastjsonschema
import yaml

schema, root = sys.argv[1:]
takes = fastjsonschema.compile(json.loads(pathlib.Path(schema).read_text()))


def judged(text):
    try:
        takes(yaml.safe_load(text))
        return True
    except fastjsonschema.JsonSchemaValueException:
        return False


root = pathlib.Path(root)
right = [*sorted((root / "profiles/layouts.d").glob("*.yaml")), root / "src/core/tests/data/peer-default-layouts.yaml"]
refused = [path.name for path in right if not judged(path.read_text())]
for block in re.findall(r"```yaml\n(.*?)```", (root / "docs/layouts.md").read_text(), re.S):
    if not judged(block):
        refused.append(block)
taken = []
for row in (root / "src/core/tests/data/malformed/expected.txt").read_text().splitlines()[1:]:
    name, _, reason, _ = row.split(" ", 3)
    if reason == "layout-syntax" or name in ("second-document", "key-twice", "layout-twice"):
        continue
    text = (root / "src/core/tests/data/malformed" / f"{name}.yaml").read_text()
    if judged(text):
        taken.append(name)
print(json.dumps({"right but refused": refused, "wrong but taken": taken}))
