# Every target calls one script in scripts/; the build itself is CMake and Ninja.

# What may be set: make serve MODEL=/path/model.gguf PORT=9000 SSD_CACHE=/mnt/ssd/kv
MODEL     ?=
PORT      ?= 8080
SSD_CACHE ?=
FUZZ_TIME ?= 60

SETUP  = scripts/setup.sh --for
EXPORT = COLDKV_MODEL="$(or $(MODEL),$(COLDKV_MODEL))" PORT="$(PORT)" \
         SSD_CACHE="$(SSD_CACHE)" FUZZ_TIME="$(FUZZ_TIME)"

.PHONY: help build serve demo check check-quick fuzz format clean distclean

help:
	@echo 'coldkv: a cold tier on disk for the prompt caches of language models'
	@echo
	@echo '  make serve        set up everything, build, serve a small model on 127.0.0.1:$(PORT)'
	@echo '                    (MODEL=file.gguf  PORT=8080  SSD_CACHE=folder)'
	@echo '  make demo         ask, kill the server, start it again, ask again: what was saved?'
	@echo '  make build        the command build/coldkv and the libraries'
	@echo '  make check        set up everything, then all builds, tests and lints'
	@echo '  make check-quick  one build and its fast tests, for work in progress'
	@echo '  make fuzz         the fuzz targets, each for FUZZ_TIME=60 seconds'
	@echo '  make format       clang-format every C file in place'
	@echo '  make clean        remove build/            make distclean  and deps/'
	@echo
	@echo 'Needs nothing but make, git and a network: what is missing is installed (as root) or'
	@echo 'named. Your own libllama: COLDKV_LLAMA_ROOT=/path. None at all: COLDKV_LLAMA=OFF.'

build:
	@$(SETUP) build
	@scripts/build.sh

serve:
	@$(EXPORT) $(SETUP) serve
	@scripts/build.sh
	@$(EXPORT) scripts/serve.sh

demo:
	@$(EXPORT) $(SETUP) serve
	@scripts/build.sh
	@$(EXPORT) scripts/demo.sh

check:
	@$(EXPORT) $(SETUP) check
	@$(EXPORT) scripts/check.sh

check-quick:
	@$(SETUP) build
	@scripts/check.sh quick

fuzz:
	@COLDKV_LLAMA=OFF $(SETUP) check
	@$(EXPORT) scripts/check.sh fuzz

format:
	@scripts/format.sh

clean:
	rm -rf build

distclean: clean
	rm -rf deps
