# Helpers with which AttnFuse declares its libraries, tools and unit tests.

# Flags that every AttnFuse target shares; kept on an interface target so that
# a project that embeds AttnFuse is not affected.
separate_arguments(ATTNFUSE_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
list(TRANSFORM ATTNFUSE_LLVM_DEFINITIONS REPLACE "^-D" "")
add_library(attnfuse_options INTERFACE)
target_compile_definitions(attnfuse_options INTERFACE ${ATTNFUSE_LLVM_DEFINITIONS})
target_include_directories(attnfuse_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
target_include_directories(attnfuse_options SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
if(ATTNFUSE_ASSERTIONS)
  # Debian's LLVM is built without assertions, and LLVMConfig.cmake overwrites
  # LLVM_ENABLE_ASSERTIONS; this concerns our own code alone.
  target_compile_options(attnfuse_options INTERFACE -UNDEBUG)
endif()
if(ATTNFUSE_SANITIZE)
  target_compile_options(attnfuse_options INTERFACE
    -fsanitize=${ATTNFUSE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(attnfuse_options INTERFACE -fsanitize=${ATTNFUSE_SANITIZE})
endif()

# What tools and tests link of LLVM: the shared libraries, or, for binaries that
# run where there is no LLVM, every archive, of which the linker keeps what is
# used. The two must never meet in one binary: options would register twice.
set(ATTNFUSE_LLVM_LIBS MLIR LLVM)
set(ATTNFUSE_EXECUTION_ENGINE MLIRExecutionEngineShared)
if(ATTNFUSE_STATIC)
  file(GLOB mlir_archives ${LLVM_LIBRARY_DIR}/libMLIR*.a)
  list(FILTER mlir_archives EXCLUDE REGEX "CAPI|Test|Runner|Runtime|runner|LspServer")
  execute_process(
    COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-config --link-static --libfiles
            nvptx x86 orcjit passes native perfjitevents
    OUTPUT_VARIABLE llvm_archives OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(llvm_archives UNIX_COMMAND "${llvm_archives}")
  set(ATTNFUSE_LLVM_LIBS -Wl,--start-group ${mlir_archives} ${llvm_archives}
      -Wl,--end-group -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,-s
      z zstd dl pthread m)
  set(ATTNFUSE_EXECUTION_ENGINE)
endif()

# add_attnfuse_library(name sources... [DEPENDS targets...] [LINK_LIBS libs...])
#
# A static library. What it needs of MLIR comes from the shared libMLIR, which
# the final binary links; LINK_LIBS names AttnFuse's own libraries.
function(add_attnfuse_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC attnfuse_options ${ARG_LINK_LIBS})
  add_dependencies(${name} attnfuse_tablegen ${ARG_DEPENDS})
endfunction()

# add_attnfuse_tool(name sources... [LINK_LIBS libs...])
function(add_attnfuse_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  add_dependencies(${name} attnfuse_tablegen)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} attnfuse_options ${ATTNFUSE_LLVM_LIBS})
endfunction()

# add_attnfuse_unittest(name sources... [LINK_LIBS libs...])
#
# A GoogleTest binary; test/unit/lit.cfg.py runs each of its tests.
function(add_attnfuse_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/unit)
  add_dependencies(${name} attnfuse_tablegen)
  target_link_libraries(${name} PRIVATE
    ${ARG_LINK_LIBS} attnfuse_options GTest::gmock GTest::gtest GTest::gtest_main ${ATTNFUSE_LLVM_LIBS})
  add_dependencies(AttnFuseUnitTests ${name})
endfunction()

# Every generated header; libraries depend on it as a whole, which keeps the
# order of the build simple and costs nothing, generation being quick.
add_custom_target(attnfuse_tablegen)

# attnfuse_tablegen_target(name): what the mlir_tablegen calls above it made.
function(attnfuse_tablegen_target name)
  add_public_tablegen_target(${name})
  add_dependencies(attnfuse_tablegen ${name})
endfunction()
