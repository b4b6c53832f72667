# C++ tests: doctest (Debian's doctest-dev), with main() of test/unit/main.cpp.
find_package(doctest REQUIRED)
find_package(Threads REQUIRED)

add_library(unit_test_main STATIC ${CMAKE_SOURCE_DIR}/test/unit/main.cpp)
target_link_libraries(unit_test_main PUBLIC doctest::doctest Threads::Threads)
# An exception in a check ends the test case; it need not be caught at each check.
target_compile_definitions(unit_test_main PUBLIC DOCTEST_CONFIG_NO_TRY_CATCH_IN_ASSERTS)
if(CMAKE_CXX_FLAGS MATCHES "fsanitize")
  # A sanitizer's handler says more of a crash than doctest's.
  target_compile_definitions(unit_test_main PUBLIC DOCTEST_CONFIG_NO_POSIX_SIGNALS)
endif()

# add_unit_tests(AREA NAME... LIBRARIES LIBRARY... [SOURCES FILE...]): the program AREA_test of all
# NAME_test.cpp, and a test AREA/NAME for the cases of each file.
function(add_unit_tests area)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "" "LIBRARIES;SOURCES")
  set(names ${given_UNPARSED_ARGUMENTS})
  list(TRANSFORM names APPEND _test.cpp OUTPUT_VARIABLE files)
  add_executable(${area}_test ${files} ${given_SOURCES})
  target_link_libraries(${area}_test PRIVATE unit_test_main ${given_LIBRARIES})
  foreach(name ${names})
    add_test(NAME ${area}/${name} COMMAND ${area}_test --source-file=*/${name}_test.cpp)
    set_tests_properties(${area}/${name} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endfunction()

# add_unit_test(AREA NAME LIBRARIES LIBRARY... [SOURCES FILE...] [ARGUMENTS WORD...]): the program
# AREA_NAME_test of NAME_test.cpp alone, for what needs arguments or a process of its own.
function(add_unit_test area name)
  cmake_parse_arguments(PARSE_ARGV 2 given "" "" "LIBRARIES;SOURCES;ARGUMENTS")
  add_executable(${area}_${name}_test ${name}_test.cpp ${given_SOURCES})
  target_link_libraries(${area}_${name}_test PRIVATE unit_test_main ${given_LIBRARIES})
  add_test(NAME ${area}/${name} COMMAND ${area}_${name}_test ${given_ARGUMENTS})
  set_tests_properties(${area}/${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
