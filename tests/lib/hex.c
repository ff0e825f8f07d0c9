/* Reads hexadecimal text; a mistake in a test's own vectors ends the program. */
#include "lib/hex.h"

#include "lib/require.h"
#include <string.h>

static unsigned digit(char c)
{
    const char *digits = "0123456789abcdef";
    const char *found = c == '\0' ? NULL : strchr(digits, c);
    TEST_REQUIRE(found != NULL);
    return (unsigned)(found - digits);
}

size_t test_hex_size(const char *hex)
{
    return strlen(hex) / 2;
}

void test_hex_bytes(const char *hex, void *out, size_t size)
{
    uint8_t *to = out;
    TEST_REQUIRE(strlen(hex) == 2 * size);
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
}

size_t test_hex_words(const char *hex, uint16_t *out, size_t capacity)
{
    size_t count = (strlen(hex) + 1) / 5;
    TEST_REQUIRE(strlen(hex) + 1 == count * 5 && count <= capacity);
    for (size_t i = 0; i < count; i++) {
        unsigned word = 0;
        for (size_t k = 0; k < 4; k++)
            word = word << 4 | digit(hex[5 * i + k]);
        out[i] = (uint16_t)word;
    }
    return count;
}
