# Tests on IR: each .mlir and .test file below this folder has its RUN lines.

import os

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
]
tools = [config.attnfuse_tools_dir, config.llvm_tools_dir]
config.environment["PATH"] = os.pathsep.join([*tools, config.environment.get("PATH", "")])
# Tests see no GPU, whether the machine has one or not.
config.environment["ATTNFUSE_LIBCUDA"] = "/nonexistent/libcuda.so"
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --allow-unused-prefixes=false"
