# Runs the example twice on one fresh folder: the second run finds what the first one left.
file(REMOVE_RECURSE "${folder}")
foreach(wanted IN ITEMS "stored: 9 tokens" "found: 9 of 10 tokens need no evaluation; equal")
  execute_process(COMMAND "${program}" "${folder}" RESULT_VARIABLE result
                  OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  message("${output}${errors}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "embed ended with ${result}")
  endif()
  if(NOT output MATCHES "${wanted}")
    message(FATAL_ERROR "embed did not say: ${wanted}")
  endif()
endforeach()
file(REMOVE_RECURSE "${folder}")
