# Runs the example in a fresh folder: six kinds, and every one says that it is equal.
file(REMOVE_RECURSE "${folder}")
execute_process(COMMAND "${program}" "${folder}" RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
file(REMOVE_RECURSE "${folder}")
message("${output}${errors}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "lifecycle ended with ${result}")
endif()
string(REGEX MATCHALL "[^\n]* bytes: equal\n" lines "${output}")
list(LENGTH lines count)
if(NOT count EQUAL 6)
  message(FATAL_ERROR "${count} kinds are equal, expected 6")
endif()
