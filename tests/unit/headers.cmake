# Every public header alone, twice, with pedantic warnings, in C11 and in C++11: it includes
# what it needs, it can be included again, and C++ can read it.
file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/coldkv/*.h")
foreach(header IN LISTS headers)
  get_filename_component(name "${header}" NAME_WE)
  foreach(language c cpp)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.${language}")
    file(CONFIGURE OUTPUT "${source}" CONTENT
         "#include <coldkv/${name}.h>\n#include <coldkv/${name}.h>\n")
    list(APPEND header_sources_${language} "${source}")
  endforeach()
endforeach()

foreach(language c cpp)
  add_library(coldkv_headers_${language} OBJECT ${header_sources_${language}})
  target_include_directories(coldkv_headers_${language} PRIVATE
                             "${PROJECT_SOURCE_DIR}/include")
  target_compile_options(coldkv_headers_${language} PRIVATE -Wall -Wextra -Wpedantic
                         -Wshadow -Werror)
  set_target_properties(coldkv_headers_${language} PROPERTIES
                        CXX_STANDARD 11 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endforeach()

# The whole library from C++: the macros compile, the names link.
add_executable(test_headers "${CMAKE_CURRENT_SOURCE_DIR}/headers.cpp")
target_link_libraries(test_headers PRIVATE coldkv)
target_compile_options(test_headers PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Werror)
set_target_properties(test_headers PROPERTIES
                      CXX_STANDARD 11 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
                      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests/bin")
add_dependencies(test_headers coldkv_headers_c coldkv_headers_cpp)
add_test(NAME test_headers COMMAND test_headers)
set_tests_properties(test_headers PROPERTIES LABELS unit TIMEOUT 300)
