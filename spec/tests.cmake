# tests.cmake: what only tests need, with BUILD_TESTING: the emulated GPUs, the C tests, and processes that specs start.

enable_testing()

# The plugin for GPUs over a CUDA runtime and an NCCL that the CPU emulates (spec/cuda/emulation/emulation.h), which only tests load. It needs
# no toolkit: the emulation has its own headers. It is in its own folder with the other plugins beside it, so that
# FLOW_PLUGINS=build/lib/emulated gives a process two GPUs.
set(FLOW_EMULATION spec/cuda/emulation)
flow_files(FLOW_EMULATION_FILES ${FLOW_EMULATION} c)
set(FLOW_EMULATED_FILES ${FLOW_CUDA_FILES})
list(FILTER FLOW_EMULATED_FILES EXCLUDE REGEX "/(libraries|cudnn_|cublas_|plan_store|plan_stage|plugin)[^/]*$")
add_library(flow_emulated_objects OBJECT ${FLOW_EMULATED_FILES} ${FLOW_EMULATION_FILES})
target_compile_definitions(flow_emulated_objects PUBLIC FLOW_EMULATED=1)
target_include_directories(flow_emulated_objects PUBLIC spec ${FLOW_EMULATION})
set_target_properties(flow_emulated_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
# Inlining that far, gcc warns of array elements that are only read where they were written. A GPU refuses what is not aligned to its size;
# here such an access ends the process.
set(FLOW_EMULATED_OPTIONS "-O3;$<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>;-fsanitize=alignment;-fsanitize-undefined-trap-on-error")
flow_pick(files FLOW_EMULATION_FILES bodies.c)
set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${FLOW_EMULATED_OPTIONS}")
list(APPEND FLOW_EMULATED_OPTIONS -O1)
include(CheckCCompilerFlag)
check_c_compiler_flag(-ftrivial-auto-var-init=pattern FLOW_PATTERNS)      # what no thread has set is no zero there, as in registers
if(FLOW_PATTERNS)
  list(APPEND FLOW_EMULATED_OPTIONS -ftrivial-auto-var-init=pattern)
endif()
flow_pick(files FLOW_EMULATION_FILES raced_bodies.c)
set_source_files_properties(${files} PROPERTIES OBJECT_DEPENDS ${CMAKE_SOURCE_DIR}/${FLOW_EMULATION}/bodies.c
  COMPILE_OPTIONS "${FLOW_EMULATED_OPTIONS};$<$<NOT:$<BOOL:${FLOW_SANITIZE}>>:-fsanitize=thread>")
flow_pick(files FLOW_EMULATION_FILES watched_bodies.c)
if(NOT FLOW_SANITIZE)                      # else it has accesses watched by other means
  list(APPEND FLOW_EMULATED_OPTIONS -fsanitize=kernel-address)
  foreach(limit instrumentation-with-call-threshold stack globals)
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)
      list(APPEND FLOW_EMULATED_OPTIONS -fno-tree-sra --param=asan-${limit}=0)
    else()
      list(APPEND FLOW_EMULATED_OPTIONS -mllvm -asan-${limit}=0)
    endif()
  endforeach()
  if(NOT CMAKE_C_COMPILER_ID STREQUAL GNU)
    list(APPEND FLOW_EMULATED_OPTIONS -Wno-pass-failed)      # clang says of each loop that it does not unroll at -O1
  endif()
endif()
set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${FLOW_EMULATED_OPTIONS}" OBJECT_DEPENDS ${CMAKE_SOURCE_DIR}/${FLOW_EMULATION}/bodies.c)
set(FLOW_EMULATED_LINKING)                                  # spec/cuda/emulation/launches.c
foreach(name flow_cuda_launch flow_convolution_run flow_product_run)
  list(APPEND FLOW_EMULATED_LINKING -Wl,--wrap=${name})
endforeach()
flow_pick(FLOW_CUDA_PLUGIN FLOW_CUDA_FILES plugin.c)
add_library(flow_emulated MODULE ${FLOW_CUDA_PLUGIN} ${FLOW_CUDA_CORE_FILES} $<TARGET_OBJECTS:flow_emulated_objects>)
target_include_directories(flow_emulated PRIVATE spec)
target_compile_definitions(flow_emulated PRIVATE FLOW_EMULATED=1 FLOW_CUDA_BUILD="no CUDA: a device that the CPU emulates, for tests")
target_link_libraries(flow_emulated PRIVATE Threads::Threads m)
target_link_options(flow_emulated PRIVATE -Wl,-z,nodelete -Wl,--no-undefined ${FLOW_EMULATED_LINKING} ${FLOW_CUDA_EXPORTS})
set_target_properties(flow_emulated PROPERTIES OUTPUT_NAME flow_cuda LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/emulated)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib/emulated)
foreach(name image hdf5 control mpi)
  if(TARGET flow_${name})
    file(CREATE_LINK ../libflow_${name}.so ${CMAKE_BINARY_DIR}/lib/emulated/libflow_${name}.so SYMBOLIC)
  endif()
endforeach()

# What the reference models ask of NVIDIA's libraries, and, with the toolkit, plans for it: no GPU is needed (scripts/cuda-plans). formulas.c
# has its own runtime, so this program is not part of flow_tests.
flow_pick(FLOW_FORMULA_FILES FLOW_CUDA_FILES library_formulas.c plan_cache.c)
flow_pick(files FLOW_CUDA_FILES library.c library_convolution.c channel_sums.c library_product.c constant.c view.c)
flow_pick(library FLOW_EMULATION_FILES library.c)
add_executable(cuda_formulas spec/cuda/formulas.c ${library} ${files} ${FLOW_FORMULA_FILES} $<TARGET_OBJECTS:flow_objects>
  ${FLOW_KERNEL_OBJECTS})
target_compile_definitions(cuda_formulas PRIVATE FLOW_EMULATED=1)
target_include_directories(cuda_formulas PRIVATE spec ${FLOW_EMULATION})
target_link_libraries(cuda_formulas PRIVATE Threads::Threads ${FLOW_ZLIB} m)
target_link_options(cuda_formulas PRIVATE -Wl,--strip-debug)
if(FLOW_CUDA)
  flow_pick(files FLOW_CUDA_FILES libraries.c)
  add_executable(cuda_bootstrap spec/cuda/bootstrap.c ${files})
  target_include_directories(cuda_bootstrap SYSTEM PRIVATE ${FLOW_CUDA_HOME}/include ${CUDNN_INCLUDE} ${NCCL_INCLUDE})
  target_link_libraries(cuda_bootstrap PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  flow_pick(files FLOW_CUDA_FILES libraries.c cudnn_graph.c cudnn_plan.c cudnn_trial.c cublas_plan.c cublas_trial.c plan_stage.c
    plan_store.c plan_trial.c)
  add_executable(cuda_plans spec/cuda/plans.c ${files} ${FLOW_FORMULA_FILES} $<TARGET_OBJECTS:flow_objects> ${FLOW_KERNEL_OBJECTS})
  target_compile_definitions(cuda_plans PRIVATE FLOW_EMULATED=0)
  target_include_directories(cuda_plans SYSTEM PRIVATE ${FLOW_CUDA_HOME}/include ${CUDNN_INCLUDE} ${NCCL_INCLUDE})
  target_link_libraries(cuda_plans PRIVATE ${FLOW_CUDA_HOME}/lib64/libcudart_static.a Threads::Threads ${FLOW_ZLIB} rt
    ${CMAKE_DL_LIBS} m)
  flow_pick(files FLOW_CUDA_FILES cublas_plan.c cublas_trial.c plan_stage.c plan_store.c plan_trial.c)      # spec/unit/cuda_tuning_spec.lua
  add_executable(cuda_algorithms spec/cuda/algorithms.c ${files} ${FLOW_FORMULA_FILES} $<TARGET_OBJECTS:flow_objects> ${FLOW_KERNEL_OBJECTS})
  target_compile_definitions(cuda_algorithms PRIVATE FLOW_EMULATED=0)
  target_include_directories(cuda_algorithms SYSTEM PRIVATE ${FLOW_CUDA_HOME}/include ${CUDNN_INCLUDE} ${NCCL_INCLUDE})
  target_link_libraries(cuda_algorithms PRIVATE Threads::Threads ${FLOW_ZLIB} m)
  target_link_options(cuda_algorithms PRIVATE -Wl,--strip-debug)
  set(FLOW_STAND_IN ${CMAKE_BINARY_DIR}/cuda/stand_in)
  add_custom_command(OUTPUT ${FLOW_STAND_IN}/libcuda.so.1
    COMMAND ${CMAKE_COMMAND} -E env CC=${CMAKE_C_COMPILER} ${CMAKE_SOURCE_DIR}/spec/cuda/make_stand_in
      ${FLOW_CUDA_HOME}/lib64/stubs/libcuda.so ${FLOW_STAND_IN}
    DEPENDS spec/cuda/stand_in.c spec/cuda/make_stand_in VERBATIM)
  add_custom_target(cuda_stand_in ALL DEPENDS ${FLOW_STAND_IN}/libcuda.so.1)
endif()

# Connects to every port of the workers of a job
add_executable(strangers spec/dist/strangers.c)
# A network that takes its time
add_executable(slow_link spec/dist/slow_link.c)

# flow_tests: one program of all C tests, spec/c/test_*.c, and of the processes that specs start, which links the engine's objects, so that
# internal functions can be tested (spec/c/runner.c). build/bin/NAME is a link to it for each of them: every file is a separate process.
# What a host sees is tested by separate programs, which link the library from outside.
find_path(CMOCKA_INCLUDE cmocka.h)
find_library(CMOCKA_LIBRARY cmocka)
set(FLOW_RUNNER_FILES spec/dist/transport_ranks.c spec/dist/worker_ranks.c spec/cuda/cuda_kernels.c)
set(FLOW_TEST_SUPPORT spec/dist/transport_calls.c spec/c/simulated_cluster.c spec/c/simulated_network.c)      # what several of them use
set(FLOW_TEST_PROGRAMS transport_ranks worker_ranks cuda_kernels)
set(FLOW_TEST_NAMES)
if(CMOCKA_INCLUDE AND CMOCKA_LIBRARY)
  file(GLOB FLOW_TEST_FILES CONFIGURE_DEPENDS spec/c/test_*.c)
  list(FILTER FLOW_TEST_FILES EXCLUDE REGEX "/test_host\\.c$")
  foreach(file ${FLOW_TEST_FILES})
    get_filename_component(name ${file} NAME_WE)
    list(APPEND FLOW_TEST_NAMES ${name})
  endforeach()
  list(APPEND FLOW_RUNNER_FILES ${FLOW_TEST_FILES})
else()
  message(STATUS "cmocka is missing (Debian: libcmocka-dev): C tests are not built")
endif()

set(FLOW_TEST_LIST)
set(FLOW_TEST_PROGRAM_LIST)
foreach(file ${FLOW_RUNNER_FILES})
  get_filename_component(name ${file} NAME_WE)
  set_property(SOURCE ${file} APPEND PROPERTY COMPILE_DEFINITIONS main=main_of_${name})
  file(STRINGS ${file} with_arguments REGEX "^int main\\(int ")
  if(with_arguments)
    string(APPEND FLOW_TEST_PROGRAM_LIST " X(${name})")
  else()
    string(APPEND FLOW_TEST_LIST " X(${name})")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test/test_names.h @ONLY CONTENT
  "/* test_names.h: made by spec/tests.cmake: what spec/c/runner.c runs. */\n#define FLOW_TESTS(X)@FLOW_TEST_LIST@\n#define FLOW_TEST_PROGRAMS(X)@FLOW_TEST_PROGRAM_LIST@\n")

add_executable(flow_tests spec/c/runner.c ${FLOW_RUNNER_FILES} ${FLOW_TEST_SUPPORT} $<TARGET_OBJECTS:flow_objects> ${FLOW_KERNEL_OBJECTS}
  $<TARGET_OBJECTS:flow_emulated_objects>)
target_include_directories(flow_tests PRIVATE spec spec/c ${FLOW_EMULATION} ${CMAKE_BINARY_DIR}/test)
target_link_libraries(flow_tests PRIVATE ${CMOCKA_LIBRARY} Threads::Threads ${FLOW_ZLIB} m)
target_link_options(flow_tests PRIVATE ${FLOW_EMULATED_LINKING})
add_dependencies(flow_tests flow_emulated)
# Sources that know of emulated GPUs, beside those of the back end itself
set_property(SOURCE ${CMAKE_SOURCE_DIR}/spec/c/test_cuda_runtime.c ${CMAKE_SOURCE_DIR}/spec/c/test_cuda_backend.c
  ${CMAKE_SOURCE_DIR}/spec/c/test_cuda_failures.c ${CMAKE_SOURCE_DIR}/spec/c/test_cuda_nccl.c
  ${CMAKE_SOURCE_DIR}/spec/c/test_cuda_contexts.c ${CMAKE_SOURCE_DIR}/spec/c/test_cuda_bounds.c
  APPEND PROPERTY COMPILE_DEFINITIONS FLOW_EMULATED=1)
if(CMOCKA_LIBRARY)                         # test_cuda_failures lets calls of the emulated runtime fail: those that it defines in their place
  set(file spec/c/test_cuda_failures.c)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} lines REGEX "^(cudaError_t __wrap_|MAKES\\(|ENDS\\()cuda")
  foreach(line ${lines})
    string(REGEX MATCH "[_(](cuda[A-Za-z]+)" name "${line}")
    target_link_options(flow_tests PRIVATE -Wl,--wrap=${CMAKE_MATCH_1})
  endforeach()
endif()
if(FLOW_CUDA AND CMOCKA_LIBRARY)
  foreach(whose nvidia emulated)           # test_cuda_headers
    add_library(${whose}_numbers OBJECT spec/cuda/${whose}_numbers.c)
    target_sources(flow_tests PRIVATE $<TARGET_OBJECTS:${whose}_numbers>)
  endforeach()
  target_include_directories(nvidia_numbers SYSTEM PRIVATE ${FLOW_CUDA_HOME}/include ${NCCL_INCLUDE})
  target_include_directories(emulated_numbers PRIVATE ${FLOW_EMULATION})
  set_property(SOURCE ${CMAKE_SOURCE_DIR}/spec/c/test_cuda_headers.c APPEND PROPERTY COMPILE_DEFINITIONS FLOW_CUDA=1)
endif()
foreach(name ${FLOW_TEST_NAMES} ${FLOW_TEST_PROGRAMS})
  list(APPEND links COMMAND ${CMAKE_COMMAND} -E create_symlink flow_tests ${name})
endforeach()
add_custom_command(TARGET flow_tests POST_BUILD ${links} WORKING_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} VERBATIM)
foreach(name ${FLOW_TEST_NAMES})
  add_test(NAME ${name} COMMAND flow_tests ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endforeach()

# Hosts: with their own LuaJIT; spec/host: one that exports functions of the names that parts of the library have, and one that does not
if(CMOCKA_LIBRARY AND TARGET flow_lua)
  add_executable(test_host spec/c/test_host.c)
  target_link_libraries(test_host PRIVATE flow_lua flow PkgConfig::LUAJIT ${CMOCKA_LIBRARY} Threads::Threads)
  add_test(NAME test_host COMMAND test_host WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endif()
if(TARGET flow_lua)
  foreach(program shared_states odd_host)
    add_executable(${program} spec/host/${program}.c)
    target_link_libraries(${program} PRIVATE flow_lua flow PkgConfig::LUAJIT Threads::Threads)
  endforeach()
endif()
foreach(guest guest guest_exporting)
  add_executable(${guest} spec/host/guest.c)
  target_link_libraries(${guest} PRIVATE flow)
endforeach()
target_compile_definitions(guest_exporting PRIVATE EXPORTS)
target_link_options(guest_exporting PRIVATE -Wl,-E)

# An allocator that fails, for LD_PRELOAD
add_library(failing_memory MODULE spec/host/failing_memory.c)
set_target_properties(failing_memory PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin C_VISIBILITY_PRESET default)
target_link_libraries(failing_memory PRIVATE Threads::Threads)

# A server with threads and one model
add_executable(shared_model spec/host/shared_model.c)
target_link_libraries(shared_model PRIVATE flow Threads::Threads)
