# A second, instrumented build of the worker's calls, with the generated dispatch.
get_target_property(call_sources worker_calls SOURCES)
list(TRANSFORM call_sources PREPEND ${CMAKE_SOURCE_DIR}/native/worker/ REGEX "^[^/]")
add_library(worker_calls_fuzzed STATIC ${call_sources})
# The fake driver has one function for all prototypes.
target_compile_options(worker_calls_fuzzed PUBLIC ${sanitizers} -fno-sanitize=function PRIVATE
  -fsanitize=fuzzer-no-link)
target_link_options(worker_calls_fuzzed PUBLIC ${sanitizers})
target_link_libraries(worker_calls_fuzzed PUBLIC cuda_abi fatbin wire_fuzzed)
add_dependencies(worker_calls_fuzzed cuda_api_generated)
add_fuzzer(dispatch worker_calls_fuzzed)
target_sources(dispatch_fuzz PRIVATE dispatch_fixture.cpp)

# The worker's image reader, with the simulated driver of the release build: its vector code
# requires GCC.
add_fuzzer(image worker_calls_fuzzed)
target_compile_definitions(image_fuzz PRIVATE
  SIMULATOR="${CMAKE_SOURCE_DIR}/build/release/native/simulator/libsimulator-cuda.so.1")
target_link_libraries(image_fuzz PRIVATE ${CMAKE_DL_LIBS})
