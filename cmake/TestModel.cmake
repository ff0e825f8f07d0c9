# COLDKV_TEST_MODEL: the GGUF that tests with a real model use. Named by COLDKV_MODEL (cache
# or environment), else the one that set-up laid down; empty when there is none.
set(COLDKV_MODEL "" CACHE FILEPATH "GGUF model for the end-to-end tests")
set(COLDKV_TEST_MODEL "${COLDKV_MODEL}")
if(NOT COLDKV_TEST_MODEL AND DEFINED ENV{COLDKV_MODEL})
  set(COLDKV_TEST_MODEL "$ENV{COLDKV_MODEL}")
endif()
if(NOT COLDKV_TEST_MODEL)
  file(GLOB coldkv_models "${coldkv_deps}/models/*.gguf")
  if(coldkv_models)
    list(GET coldkv_models 0 COLDKV_TEST_MODEL)
  endif()
endif()
