# Runs the program of docs/embedding.md in a fresh folder: it judges itself, and prints what the
# page shows.
file(REMOVE_RECURSE "${folder}")
execute_process(COMMAND "${program}" "${folder}" RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
file(REMOVE_RECURSE "${folder}")
message("${output}${errors}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the page's program ended with ${result}")
endif()
file(READ "${page}" text)
string(REGEX REPLACE "\n$" "" output "${output}")
string(REPLACE "\n" "\n    " output "${output}")
string(FIND "${text}" "\n    ${output}\n" place)
if(place EQUAL -1)
  message(FATAL_ERROR "the page shows another output")
endif()
