# What `cmake --install` lays down: the command, libcoldkv with its headers, and what
# pkg-config and find_package(coldkv) need to find them. All of it may be moved: paths are
# relative to the files that name them. Included last by the top-level CMakeLists.txt.
include(CMakePackageConfigHelpers)

set(coldkv_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/coldkv")
set(coldkv_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(TARGETS coldkv EXPORT coldkvTargets
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT coldkvTargets NAMESPACE coldkv:: DESTINATION "${coldkv_cmake_dir}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/coldkv"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "llama.h" EXCLUDE)

if(TARGET coldkv_cli)
  install(TARGETS coldkv_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  if(BUILD_SHARED_LIBS)
    file(RELATIVE_PATH up "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
    if(APPLE)
      set_target_properties(coldkv_cli PROPERTIES
        INSTALL_RPATH "@loader_path/${up};${COLDKV_LLAMA_FOLDER}")
    else()
      set_target_properties(coldkv_cli PROPERTIES
        INSTALL_RPATH "$ORIGIN/${up};${COLDKV_LLAMA_FOLDER}")
    endif()
  endif()
endif()

# The bridge knows libllama by the name coldkv_llama; coldkvConfig.cmake makes that target
# again where it is used, beginning where it was found here.
set(COLDKV_INSTALL_BRIDGE OFF)
set(COLDKV_LLAMA_LIBRARY_DIR "")
if(TARGET coldkv_llama_bridge)
  set(COLDKV_INSTALL_BRIDGE ON)
  set_target_properties(coldkv_llama_bridge PROPERTIES EXPORT_NAME llama_bridge)
  install(TARGETS coldkv_llama_bridge EXPORT coldkvLlamaTargets
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT coldkvLlamaTargets NAMESPACE coldkv:: DESTINATION "${coldkv_cmake_dir}")
  install(FILES "${PROJECT_SOURCE_DIR}/include/coldkv/llama.h"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/coldkv")
  if(TARGET coldkv_llama_llama)
    get_target_property(coldkv_llama_file coldkv_llama_llama IMPORTED_LOCATION)
    get_filename_component(COLDKV_LLAMA_LIBRARY_DIR "${coldkv_llama_file}" DIRECTORY)
  endif()
endif()

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/coldkvConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/coldkvConfig.cmake" INSTALL_DESTINATION "${coldkv_cmake_dir}"
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/coldkvConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/coldkvConfig.cmake"
              "${PROJECT_BINARY_DIR}/coldkvConfigVersion.cmake"
        DESTINATION "${coldkv_cmake_dir}")

# pkg-config: a static library hands its own needs on, a shared one keeps them to itself.
file(RELATIVE_PATH COLDKV_PC_PREFIX "/${coldkv_pc_dir}" "/")
string(REGEX REPLACE "/$" "" COLDKV_PC_PREFIX "${COLDKV_PC_PREFIX}")
set(COLDKV_PC_LIBS "-lm ${CMAKE_THREAD_LIBS_INIT}")
set(COLDKV_PC_LIBS_PRIVATE "")
set(COLDKV_PC_PRIVATE "")
if(BUILD_SHARED_LIBS)
  set(COLDKV_PC_LIBS "")
  set(COLDKV_PC_LIBS_PRIVATE "-lm ${CMAKE_THREAD_LIBS_INIT}")
  set(COLDKV_PC_PRIVATE ".private")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/coldkv.pc.in" "${PROJECT_BINARY_DIR}/coldkv.pc"
               @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/coldkv.pc" DESTINATION "${coldkv_pc_dir}")

if(COLDKV_TESTS)
  set(flags "${CMAKE_C_FLAGS}")
  if(COLDKV_SANITIZE)
    string(APPEND flags " -fsanitize=${COLDKV_SANITIZE}")
  endif()
  if(COLDKV_COVERAGE)
    string(APPEND flags " --coverage")
  endif()
  add_test(NAME install_embed
           COMMAND "${CMAKE_COMMAND}" -D "build=${PROJECT_BINARY_DIR}"
                   -D "source=${PROJECT_SOURCE_DIR}/examples"
                   -D "libdir=${CMAKE_INSTALL_LIBDIR}" -D "bindir=${CMAKE_INSTALL_BINDIR}"
                   -D "compiler=${CMAKE_C_COMPILER}" -D "flags=${flags}"
                   -D "pkg_config=${PKG_CONFIG_EXECUTABLE}"
                   -D "version=${PROJECT_VERSION}"
                   -P "${CMAKE_CURRENT_LIST_DIR}/test_install.cmake")
  set_tests_properties(install_embed PROPERTIES LABELS unit TIMEOUT 120)
endif()
