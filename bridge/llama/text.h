/*
 * A growing text, for canonical descriptions that are hashed and kept. What it writes is
 * ASCII, the same on every host, in every locale. A failed allocation is remembered and
 * makes all that follows do nothing; the user asks once, at the end.
 */
#ifndef COLDKV_BRIDGE_LLAMA_TEXT_H
#define COLDKV_BRIDGE_LLAMA_TEXT_H

#include <coldkv/alloc.h>
#include <coldkv/export.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckvi_llama_text {
    const struct ckv_alloc *alloc;
    char *data; /* NUL-terminated once something was put */
    size_t length;
    size_t capacity;
    bool failed;
};

void ckvi_llama_text_init(struct ckvi_llama_text *text, const struct ckv_alloc *alloc);
void ckvi_llama_text_deinit(struct ckvi_llama_text *text);

/* As it stands. */
void ckvi_llama_text_put(struct ckvi_llama_text *text, const char *raw);
void ckvi_llama_text_put_bytes(struct ckvi_llama_text *text, const char *raw,
                               size_t size);
/* The inside of a JSON string: quotes, backslashes, control bytes and every byte above
 * 0x7e as \u00XX, so that foreign bytes stay distinct and the text stays ASCII. */
void ckvi_llama_text_escape(struct ckvi_llama_text *text, const char *bytes, size_t size);
/* "bytes" in quotes, escaped. */
void ckvi_llama_text_string(struct ckvi_llama_text *text, const char *bytes);
/* "name": */
void ckvi_llama_text_key(struct ckvi_llama_text *text, const char *name);
void ckvi_llama_text_unsigned(struct ckvi_llama_text *text, uint64_t value);
void ckvi_llama_text_signed(struct ckvi_llama_text *text, int64_t value);
void ckvi_llama_text_boolean(struct ckvi_llama_text *text, bool value);
/* %.9g or %.17g, which give the same bits when read back, with '.' in any locale; what is
 * not finite as its bits: bits:0x7fc00000. */
void ckvi_llama_text_float(struct ckvi_llama_text *text, float value);
void ckvi_llama_text_double(struct ckvi_llama_text *text, double value);

#endif
