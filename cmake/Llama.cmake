# Finds libllama and ggml and offers them as the target coldkv_llama. Looked for in this
# order: COLDKV_LLAMA_ROOT (cache or environment), deps/llama as scripts/setup.sh lays it
# down, CMake's own package llama, pkg-config's llama.
#
# Sets COLDKV_HAVE_LLAMA, and COLDKV_GGML_BACKEND_DIR when ggml's CPU backends lie beside the
# library as modules that the program has to load; the target then defines it for C as well.

set(COLDKV_HAVE_LLAMA OFF)
set(COLDKV_GGML_BACKEND_DIR "")
set(COLDKV_LLAMA_FOLDER "")

# One library of the set by its stem: names may carry the release (libllama.v0.5.0.so), and
# an exact name is preferred.
function(coldkv_llama_library out stem)
  set(found "")
  foreach(folder ${ARGN})
    file(GLOB exact "${folder}/lib${stem}.so" "${folder}/lib${stem}.dylib"
         "${folder}/lib${stem}.a")
    file(GLOB versioned "${folder}/lib${stem}.v*.so" "${folder}/lib${stem}.so.*"
         "${folder}/lib${stem}.v*.dylib")
    list(APPEND exact ${versioned})
    if(exact)
      list(GET exact 0 found)
      break()
    endif()
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# coldkv_llama from a folder: an installation, our deps/llama, or a built source tree.
# Leaves the reason in COLDKV_LLAMA_WHY when it is not one.
function(coldkv_llama_from_root root)
  set(folders "${root}/lib" "${root}/lib64" "${root}/${CMAKE_INSTALL_LIBDIR}"
      "${root}/build/bin" "${root}/bin" "${root}")
  find_path(llama_h llama.h PATHS "${root}/include" "${root}" NO_DEFAULT_PATH NO_CACHE)
  find_path(ggml_h ggml.h PATHS "${root}/include" "${root}/ggml/include" "${root}"
            NO_DEFAULT_PATH NO_CACHE)
  coldkv_llama_library(llama llama ${folders})
  coldkv_llama_library(ggml ggml ${folders})
  coldkv_llama_library(base ggml-base ${folders})
  foreach(part llama_h ggml_h llama ggml base)
    if(NOT ${part})
      string(REPLACE "_h" ".h" name "${part}")
      string(REPLACE "base" "libggml-base" name "${name}")
      set(COLDKV_LLAMA_WHY "${name} is not below ${root}" PARENT_SCOPE)
      return()
    endif()
  endforeach()

  # Full paths, so that no other libllama on the machine is taken by accident.
  foreach(part llama ggml base)
    add_library(coldkv_llama_${part} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(coldkv_llama_${part} PROPERTIES IMPORTED_LOCATION "${${part}}")
  endforeach()
  add_library(coldkv_llama INTERFACE IMPORTED GLOBAL)
  target_include_directories(coldkv_llama INTERFACE "${llama_h}" "${ggml_h}")
  target_link_libraries(coldkv_llama INTERFACE coldkv_llama_llama coldkv_llama_ggml
                        coldkv_llama_base)

  get_filename_component(folder "${ggml}" DIRECTORY)
  set(COLDKV_LLAMA_FOLDER "${folder}" PARENT_SCOPE)
  file(GLOB modules "${folder}/libggml-cpu-*.so" "${folder}/libggml-cpu-*.dylib")
  if(modules)
    target_compile_definitions(coldkv_llama INTERFACE COLDKV_GGML_BACKEND_DIR="${folder}")
    set(COLDKV_GGML_BACKEND_DIR "${folder}" PARENT_SCOPE)
  endif()
  message(STATUS "libllama: ${llama}")
endfunction()

function(coldkv_llama_from_package)
  find_package(llama CONFIG QUIET)
  if(llama_FOUND AND TARGET llama)
    add_library(coldkv_llama INTERFACE IMPORTED GLOBAL)
    target_link_libraries(coldkv_llama INTERFACE llama)
    set_target_properties(llama PROPERTIES IMPORTED_GLOBAL TRUE)
    message(STATUS "libllama: CMake package in ${llama_DIR}")
    return()
  endif()
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(LLAMA QUIET IMPORTED_TARGET GLOBAL llama)
    if(LLAMA_FOUND)
      add_library(coldkv_llama INTERFACE IMPORTED GLOBAL)
      target_link_libraries(coldkv_llama INTERFACE PkgConfig::LLAMA)
      message(STATUS "libllama: pkg-config, version ${LLAMA_VERSION}")
    endif()
  endif()
endfunction()

# A build folder remembers the environment that it was made in.
if(NOT COLDKV_LLAMA_ROOT AND DEFINED ENV{COLDKV_LLAMA_ROOT})
  set(COLDKV_LLAMA_ROOT "$ENV{COLDKV_LLAMA_ROOT}" CACHE PATH
      "Folder with include/ and lib/ of libllama" FORCE)
endif()
set(coldkv_deps "${PROJECT_SOURCE_DIR}/deps")
if(DEFINED ENV{COLDKV_DEPS} AND NOT DEFINED COLDKV_DEPS)
  set(COLDKV_DEPS "$ENV{COLDKV_DEPS}" CACHE PATH "Where set-up laid down what it fetched")
endif()
if(COLDKV_DEPS)
  set(coldkv_deps "${COLDKV_DEPS}")
endif()

if(COLDKV_LLAMA STREQUAL "OFF")
  message(STATUS "libllama: left out (COLDKV_LLAMA=OFF)")
elseif(COLDKV_LLAMA_ROOT)
  # Named by the user: what is wrong with it is an error, whatever COLDKV_LLAMA says.
  coldkv_llama_from_root("${COLDKV_LLAMA_ROOT}")
  if(NOT TARGET coldkv_llama)
    message(FATAL_ERROR "COLDKV_LLAMA_ROOT: ${COLDKV_LLAMA_WHY}")
  endif()
else()
  if(EXISTS "${coldkv_deps}/llama/lib")
    coldkv_llama_from_root("${coldkv_deps}/llama")
  endif()
  if(NOT TARGET coldkv_llama)
    coldkv_llama_from_package()
  endif()
endif()

if(TARGET coldkv_llama)
  set(COLDKV_HAVE_LLAMA ON)
  # An installed program finds the libllama that it was linked with. The path that is meant
  # to be rewritten at install time ends in an empty entry, the current folder: anyone's
  # libstdc++ there would be loaded. So the final path is written at once, where nothing of
  # ours is loaded from the build folder.
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
  # The above leaves out folders inside the source tree, such as deps/.
  list(APPEND CMAKE_INSTALL_RPATH ${COLDKV_LLAMA_FOLDER})
  if(NOT BUILD_SHARED_LIBS)
    set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
  endif()
elseif(COLDKV_LLAMA STREQUAL "ON")
  message(FATAL_ERROR
    "COLDKV_LLAMA=ON, but there is no libllama. Run scripts/setup.sh, or name yours with "
    "-DCOLDKV_LLAMA_ROOT=/path (include/llama.h and lib/libllama.so below it), or install "
    "one that find_package(llama) or pkg-config finds.")
elseif(NOT COLDKV_LLAMA STREQUAL "OFF")
  message(STATUS "libllama: not found; library and command are built, the server is not")
endif()
