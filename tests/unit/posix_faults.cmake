# Failing system calls under the POSIX table: the linker swaps C library functions for the
# test's own. That needs GNU ld's --wrap, glibc's names for 64-bit offsets, and the library
# as objects in the program.
check_symbol_exists(__GLIBC__ "features.h" COLDKV_GLIBC)
if(COLDKV_GLIBC AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT BUILD_SHARED_LIBS)
  coldkv_add_test(test_io_posix_faults unit posix_faults.c)
  foreach(function pread64 pwrite64 getrandom fdatasync fsync flock fallocate64 ftruncate64
          futimens fstat64 openat64 fstatvfs64 fdopendir readdir64)
    target_link_options(test_io_posix_faults PRIVATE "LINKER:--wrap=${function}")
  endforeach()
endif()
