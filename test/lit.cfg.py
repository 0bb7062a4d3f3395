# Tests on IR: each .mlir and .test file below this folder has its RUN lines.

import os
import shutil

import lit.formats

config.name = f"AttnFuse-{config.attnfuse_suite}"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "data", "unit", "execution"]
config.test_source_root = config.attnfuse_test_root
config.test_exec_root = os.path.join(
    config.attnfuse_build_root, "test", "lit", config.attnfuse_suite
)

config.substitutions += [
    ("%python", config.attnfuse_python),
    ("%data", os.path.join(config.attnfuse_source_root, "test", "data")),
    ("%examples", os.path.join(config.attnfuse_source_root, "examples")),
    ("%source", config.attnfuse_source_root),
    ("%tools", config.attnfuse_tools_dir),
]
tools = [config.attnfuse_tools_dir, config.llvm_tools_dir]
config.environment["PATH"] = os.pathsep.join([*tools, config.environment.get("PATH", "")])
# Tests see no GPU, whether the machine has one or not.
config.environment["ATTNFUSE_LIBCUDA"] = "/nonexistent/libcuda.so"
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --allow-unused-prefixes=false"

# Whether the machine has a GPU makes no difference: examples and tests run on the CPU.
config.environment["ATTNFUSE_LIBCUDA"] = "/nonexistent/libcuda.so"

# Where it is there, NVIDIA's assembler tells what becomes of kernels.
named = os.environ.get("ATTNFUSE_PTXAS")
places = [os.environ.get("PATH", ""), "/usr/local/cuda/bin"]
config.attnfuse_ptxas = (
    shutil.which(named) if named else shutil.which("ptxas", path=os.pathsep.join(places))
)
config.attnfuse_no_ptxas = (
    f"ATTNFUSE_PTXAS={named} is no program"
    if named
    else "there is no ptxas: not in ATTNFUSE_PTXAS, on the path, or in /usr/local/cuda/bin"
)
if config.attnfuse_ptxas:
    config.available_features.add("ptxas")
    config.environment["ATTNFUSE_PTXAS"] = config.attnfuse_ptxas
