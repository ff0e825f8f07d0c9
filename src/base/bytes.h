/* Little-endian integers in byte buffers; no struct overlays. */
#ifndef COLDKV_BASE_BYTES_H
#define COLDKV_BASE_BYTES_H

#include <stdint.h>

static inline uint32_t ckvi_get_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static inline uint64_t ckvi_get_le64(const uint8_t *p)
{
    return (uint64_t)ckvi_get_le32(p) | (uint64_t)ckvi_get_le32(p + 4) << 32;
}

static inline void ckvi_put_le32(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
    p[2] = (uint8_t)(value >> 16);
    p[3] = (uint8_t)(value >> 24);
}

static inline void ckvi_put_le64(uint8_t *p, uint64_t value)
{
    ckvi_put_le32(p, (uint32_t)value);
    ckvi_put_le32(p + 4, (uint32_t)(value >> 32));
}

#endif
