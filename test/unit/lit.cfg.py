# GoogleTest binaries: each test of each binary counts.

import os

import lit.formats

config.name = "AttnFuse-Unit"
config.test_exec_root = os.path.join(config.attnfuse_build_root, "test", "unit")
config.test_source_root = config.test_exec_root
config.test_format = lit.formats.GoogleTest(".", "Tests")
