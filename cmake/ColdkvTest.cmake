# coldkv_add_test(name label source...): one cmocka program, registered with CTest under a
# label (unit, scenario, e2e). It links the library with its internal headers in reach.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

function(coldkv_add_test name label)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src"
                             "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${name} PRIVATE
    COLDKV_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(${name} PRIVATE coldkv_flags coldkv PkgConfig::CMOCKA Threads::Threads)
  if(TARGET coldkv_testlib)
    target_link_libraries(${name} PRIVATE coldkv_testlib)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                        "${CMAKE_BINARY_DIR}/tests/bin")
  add_test(NAME ${name} COMMAND ${name})
  # What loads a model is slow on a busy machine.
  set(limit 300)
  if(label STREQUAL "e2e")
    set(limit 1200)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${limit})
endfunction()
