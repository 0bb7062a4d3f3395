"""Parses every example of the attn dialect's ODS descriptions with attnfuse-opt.

usage: ods_examples.py SOURCE_ROOT, with llvm-tblgen and attnfuse-opt on the PATH

Each operation needs an ```mlir example of its own that holds it; a terminator may be shown in the
example of the operation whose region it ends. Each attribute needs an example that starts with
`#attn.`, each type one of its own or a place in an operation's. Prints
`N examples parsed, none missing`, or what is wrong.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

NAME = r"%\w+"
NAMES = rf"{NAME}(?:, {NAME})*"
TYPE = r"(?:tensor<[^>]*>|!attn\.\w+<[^>]*>|\w+)"
TYPES = rf"{TYPE}(?:, {TYPE})*"


def split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def free_values(example: str) -> dict[str, str]:
    """The types of what an example uses and does not define, read off the operations on top level.

    Types are where the assembly format has them: beside a value in a clause (`at %p : index`,
    `slopes(%m : T)`), or at the end for the leading operands. A leading operand without a type is
    a mask, the type that has just one form.
    """
    values: dict[str, str] = {}
    defined = set()
    depth = 0
    for line in example.splitlines():
        at_top, depth = depth == 0, depth + line.count("{") - line.count("}")
        operation = re.match(rf"\s*({NAMES}) = attn\.\w+ ?(.*)", line)
        if not at_top or not operation:
            continue
        used = {}
        rest = operation[2]
        for clause in re.finditer(rf"({NAMES}) : ({TYPES})(?=\)| \w| \{{)", rest):
            used.update(zip(split(clause[1]), split(clause[2])))
        leading = re.match(NAMES, rest)
        trailing = re.search(rf": ({TYPES})(?: \{{)?$", rest)
        types = split(trailing[1]) if trailing else []
        for place, name in enumerate(split(leading[0]) if leading else []):
            used.setdefault(name, types[place] if place < len(types) else "!attn.mask")
        for name, its_type in used.items():
            if name not in defined:
                values.setdefault(name, its_type)
        defined.update(split(operation[1]))
    return values


def parse(source: str) -> str:
    """The errors that attnfuse-opt has with a source."""
    run = subprocess.run(["attnfuse-opt", "-"], input=source, capture_output=True, text=True)
    return "" if run.returncode == 0 else run.stderr or f"exit status {run.returncode}"


def operation_examples(description: str) -> list[str]:
    return re.findall(r"```mlir\n(.*?)```", description, re.DOTALL)


def literal_examples(description: str) -> list[str]:
    """Attributes and types given after `Example`, as inline code or as a block of code."""
    text = description.partition("Example")[2]
    found = re.findall(r"```\n(.*?)```|`([#!]attn\.[^`]*)`", text, re.DOTALL)
    return [(block or inline).strip() for block, inline in found]


def main() -> int:
    root = Path(sys.argv[1])
    tblgen = shutil.which("llvm-tblgen")
    if not tblgen:
        print("llvm-tblgen was not found on the PATH")
        return 1
    # MLIR's own .td files are installed beside the tools.
    llvm_include = str(Path(tblgen).resolve().parent.parent / "include")
    ods = root / "include/AttnFuse/Dialect/Attn/IR/AttnOps.td"
    command = [tblgen, "--dump-json", "-I", str(root / "include"), "-I", llvm_include, str(ods)]
    records = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    problems = []
    count = 0
    shown_anywhere = ""

    def check(name: str, example: str, source: str) -> None:
        nonlocal count
        count += 1
        if errors := parse(source):
            problems.append(f"{name}: the example does not parse:\n{example}\n{errors}")

    without = []
    for record in map(records.get, records["!instanceof"]["Op"]):
        name = f"attn.{record['opName']}"
        examples = operation_examples(record["description"])
        for example in examples:
            shown_anywhere += example
            arguments = ", ".join(f"{n}: {t}" for n, t in free_values(example).items())
            check(name, example, f"func.func @f({arguments}) {{\n{example}\nreturn\n}}")
        if not any(re.search(rf"{re.escape(name)}\b", example) for example in examples):
            is_terminator = any(t["def"] == "Terminator" for t in record["traits"])
            without.append((name, is_terminator))
    for name, is_terminator in without:
        if not is_terminator or not re.search(rf"{re.escape(name)}\b", shown_anywhere):
            problems.append(f"{name}: no example")

    for kind, sigil, template in [
        ("AttrDef", "#", "func.func private @f() attributes {{a = {}}}"),
        ("TypeDef", "!", "func.func private @f({})"),
    ]:
        for record in map(records.get, records["!instanceof"][kind]):
            name = f"{sigil}attn.{record['mnemonic']}"
            examples = [e for e in literal_examples(record["description"]) if e.startswith(name)]
            for example in examples:
                check(name, example, template.format(example))
            # A type without parameters is its name, and only inferred from the operation's.
            shown = kind == "TypeDef" and (
                name in shown_anywhere or not record["parameters"]["args"]
            )
            if not examples and not shown:
                problems.append(f"{name}: no example")

    for problem in problems:
        print(problem)
    if not problems:
        print(f"{count} examples parsed, none missing")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
