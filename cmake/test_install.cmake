# Installs a build into a fresh folder, moves the folder, and builds the example against it
# twice: by pkg-config and by find_package. Run by ctest (see install.cmake).
set(place "${build}/install-test")
set(prefix "${place}/moved")
file(REMOVE_RECURSE "${place}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${result}\n${output}\n${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(try program store)
  run("${program}" "${place}/${store}")
  run("${program}" "${place}/${store}")
  if(NOT output MATCHES "9 of 10 tokens need no evaluation; equal")
    message(FATAL_ERROR "${program} said: ${output}")
  endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${build}" --prefix "${place}/first")
file(RENAME "${place}/first" "${prefix}")

if(EXISTS "${prefix}/${bindir}/coldkv")
  run("${prefix}/${bindir}/coldkv" --version)
  if(NOT output STREQUAL "coldkv ${version}")
    message(FATAL_ERROR "coldkv --version said: ${output}")
  endif()
endif()

set(ENV{PKG_CONFIG_PATH} "${prefix}/${libdir}/pkgconfig")
set(ENV{LD_LIBRARY_PATH} "${prefix}/${libdir}")
run("${pkg_config}" --exact-version=${version} coldkv)
run("${pkg_config}" --cflags --libs coldkv)
separate_arguments(found UNIX_COMMAND "${output}")
separate_arguments(wanted UNIX_COMMAND "${flags}")
run("${compiler}" -std=c11 -Wall -Wextra -Werror ${wanted} "${source}/embed.c" -o
    "${place}/by-pkg-config" ${found})
try("${place}/by-pkg-config" store-1)
# The caches need more of the system than the store does.
run("${compiler}" -std=c11 -Wall -Wextra -Werror ${wanted} "${source}/lifecycle.c" -o
    "${place}/lifecycle" ${found})

file(MAKE_DIRECTORY "${place}/project")
file(COPY "${source}/embed.c" DESTINATION "${place}/project")
file(WRITE "${place}/project/CMakeLists.txt" [[
cmake_minimum_required(VERSION 3.22)
project(embedder LANGUAGES C)
find_package(coldkv 0.1 REQUIRED)
add_executable(embed embed.c)
target_link_libraries(embed PRIVATE coldkv::coldkv)
]])
run("${CMAKE_COMMAND}" -S "${place}/project" -B "${place}/project/build"
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_C_COMPILER=${compiler}" "-DCMAKE_C_FLAGS=${flags}")
run("${CMAKE_COMMAND}" --build "${place}/project/build")
try("${place}/project/build/embed" store-2)

file(REMOVE_RECURSE "${place}")
