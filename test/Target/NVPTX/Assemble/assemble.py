"""Every example, compiled and assembled for every chip: a test per program and chip.

A test passes if ptxas accepts the kernels, says nothing of the kind C75xx (it serialises wgmma, it
ignores setmaxnreg) and spills no registers. What does spill is listed in spills.txt, a list that
may only shrink: a program that is listed and spills no more fails as well.

How many registers are spilled depends on ptxas, so the list names the release that it holds for;
with another one spills are not compared. To save time some chips get three examples only, unless
ATTNFUSE_TEST_ALL_CHIPS=1 is set.
"""

import re
import subprocess
from pathlib import Path

import lit.formats
import lit.Test

ALWAYS = ["sm_80", "sm_90"]
OTHERS = ["sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"]
FOR_OTHERS = ["causal", "llama3_prefill", "scaled_dot_product"]
LIST_TEST = "list"


def release_of(ptxas: str | None) -> str | None:
    """The release that `ptxas --version` names, such as 13.0."""
    if not ptxas:
        return None
    said = subprocess.run([ptxas, "--version"], capture_output=True, text=True)
    found = re.search(r"release (\d+\.\d+)", said.stdout)
    return found[1] if found else None


def read_known(path: str) -> tuple[str, set[tuple[str, str]]]:
    """The release of ptxas that the list holds for, and the programs and chips listed."""
    release, known = "", set()
    for line in Path(path).read_text().splitlines():
        words = line.split("#")[0].split()
        if len(words) == 3 and words[:2] == ["ptxas", "release"]:
            release = words[2]
        elif len(words) == 2:
            known.add((words[0], words[1]))
        elif words:
            raise ValueError(f"{path}: expected a program and a chip, got '{line}'")
    return release, known


def spilled(log: str) -> int:
    """Bytes that the kernels of a log of `ptxas -v` store and load as spills."""
    counts = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if not counts:
        raise ValueError("ptxas -v says nothing of spills:\n" + log)
    return sum(int(stores) + int(loads) for stores, loads in counts)


class Assemble(lit.formats.TestFormat):
    def __init__(
        self,
        examples: str,
        ptxas: str | None,
        why_not: str,
        every_chip: bool,
        known_spills: str,
    ):
        self.examples = examples
        self.ptxas = ptxas
        self.why_not = why_not
        self.every_chip = every_chip
        self.list = known_spills
        self.listed_release, self.known = read_known(known_spills)
        self.release = release_of(ptxas)

    def programs(self) -> list[str]:
        return sorted(path.stem for path in Path(self.examples).glob("*.mlir"))

    def getTestsInDirectory(self, suite, path_in_suite, lit_config, local_config):
        def test(name: str):
            return lit.Test.Test(suite, (*path_in_suite, name), local_config)

        yield test(LIST_TEST)
        for program in self.programs():
            for chip in [*ALWAYS, *OTHERS]:
                if chip in ALWAYS or self.every_chip or program in FOR_OTHERS:
                    yield test(f"{program}.{chip}")

    def execute(self, test, lit_config):
        name = test.path_in_suite[-1]
        if name == LIST_TEST:
            return self.check_list()
        if not self.ptxas:
            return lit.Test.UNSUPPORTED, self.why_not
        program, chip = name.rsplit(".", 1)
        command = ["attnfuse-run", f"{self.examples}/{program}.mlir", f"--chip={chip}"]
        command.append("--emit=cubin")
        ran = subprocess.run(command, capture_output=True, env=test.config.environment)
        log = ran.stderr.decode(errors="replace")
        if ran.returncode:
            return lit.Test.FAIL, f"{' '.join(command)}: status {ran.returncode}\n{log}"
        if not ran.stdout.startswith(b"\x7fELF"):
            return lit.Test.FAIL, f"{' '.join(command)}: gave no cubin\n{log}"
        if re.search(r"\bC75\d\d\b", log):
            return lit.Test.FAIL, f"ptxas complains:\n{log}"
        return self.compare_spills(program, chip, log)

    def compare_spills(self, program: str, chip: str, log: str):
        count, listed = spilled(log), (program, chip) in self.known
        if self.release != self.listed_release:
            return lit.Test.PASS, (
                f"spills {count} bytes; not compared, {self.list} holds for ptxas "
                f"{self.listed_release}, this is {self.release}"
            )
        if count and not listed:
            return lit.Test.FAIL, (
                f"spills {count} bytes, and '{program} {chip}' is not in {self.list}:\n{log}"
            )
        if listed and not count:
            return lit.Test.FAIL, f"spills no more: remove '{program} {chip}' from {self.list}"
        return lit.Test.PASS, f"spills {count} bytes"

    def check_list(self):
        """What is listed has to exist."""
        unknown = [
            f"{program} {chip}"
            for program, chip in sorted(self.known)
            if program not in self.programs() or chip not in [*ALWAYS, *OTHERS]
        ]
        absent = [program for program in FOR_OTHERS if program not in self.programs()]
        if unknown or absent or not self.listed_release:
            return lit.Test.FAIL, (
                f"{self.list}: names what does not exist: {', '.join([*unknown, *absent])}; "
                f"release {self.listed_release or 'missing'}"
            )
        return lit.Test.PASS, f"{len(self.known)} programs and chips listed"
