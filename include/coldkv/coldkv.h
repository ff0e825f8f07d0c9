/*
 * coldkv: an SSD cold tier for LLM prompt caches. This header includes the whole library;
 * the bridge to llama.cpp has its own, <coldkv/llama.h>.
 */
#ifndef COLDKV_COLDKV_H
#define COLDKV_COLDKV_H

#include <coldkv/activity.h>
#include <coldkv/affine.h>
#include <coldkv/alloc.h>
#include <coldkv/array.h>
#include <coldkv/cache.h>
#include <coldkv/clock.h>
#include <coldkv/dtype.h>
#include <coldkv/durability.h>
#include <coldkv/entry.h>
#include <coldkv/export.h>
#include <coldkv/float.h>
#include <coldkv/hash.h>
#include <coldkv/header.h>
#include <coldkv/held.h>
#include <coldkv/index.h>
#include <coldkv/io.h>
#include <coldkv/lifecycle.h>
#include <coldkv/log.h>
#include <coldkv/prompt_cache.h>
#include <coldkv/reader.h>
#include <coldkv/sha256.h>
#include <coldkv/spill_queue.h>
#include <coldkv/status.h>
#include <coldkv/store.h>
#include <coldkv/transfer.h>
#include <coldkv/turboquant.h>
#include <coldkv/writer.h>

#endif
