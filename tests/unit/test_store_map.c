/* The store's small containers: the intrusive map and the list of names. */
#include "lib/counting_alloc.h"
#include "lib/unit.h"
#include "store/listing.h"
#include "store/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct thing {
    int value;
    struct ckvi_node node;
};

static struct thing *thing_of(struct ckvi_node *node)
{
    return node ? CKVI_CONTAINER(node, struct thing, node) : NULL;
}

static struct test_alloc alloc;
static struct ckvi_map map;

static int setup(void **state)
{
    struct ckv_error error;
    (void)state;
    test_alloc_init(&alloc);
    assert_ok(ckvi_map_init(&map, &alloc.alloc, &error), error);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ckvi_map_deinit(&map);
    ckvi_map_deinit(&map);
    if (!test_alloc_clean(&alloc))
        return -1;
    test_alloc_deinit(&alloc);
    return 0;
}

static void equal_hashes_stay_apart(void **state)
{
    struct thing things[4];
    int seen = 0;
    (void)state;
    for (int i = 0; i < 4; i++) {
        things[i].value = i;
        /* the fourth shares only the bucket */
        ckvi_map_insert(&map, &things[i].node, i < 3 ? 7 : 7 + 64);
    }
    for (struct ckvi_node *n = ckvi_map_first(&map, 7); n; n = ckvi_map_same(n))
        seen |= 1 << thing_of(n)->value;
    assert_int_equal(seen, 7);
    assert_int_equal(thing_of(ckvi_map_first(&map, 7 + 64))->value, 3);
    assert_null(ckvi_map_first(&map, 8));
    ckvi_map_remove(&map, &things[1].node);
    ckvi_map_remove(&map, &things[1].node); /* not there any more: nothing happens */
    assert_int_equal(map.count, 3);
    seen = 0;
    for (struct ckvi_node *n = ckvi_map_next(&map, NULL); n; n = ckvi_map_next(&map, n))
        seen |= 1 << thing_of(n)->value;
    assert_int_equal(seen, 13);
}

static void many_nodes_are_found_after_growing(void **state)
{
    enum { MANY = 3000 };
    struct thing *things = calloc(MANY, sizeof *things);
    size_t visited = 0;
    (void)state;
    for (int i = 0; i < MANY; i++) {
        things[i].value = i;
        ckvi_map_insert(&map, &things[i].node, ckvi_map_hash_u64((uint64_t)i));
    }
    assert_true(map.bucket_count >= MANY / 2);
    for (int i = 0; i < MANY; i++) {
        struct ckvi_node *n = ckvi_map_first(&map, ckvi_map_hash_u64((uint64_t)i));
        while (n && thing_of(n)->value != i)
            n = ckvi_map_same(n);
        assert_non_null(n);
    }
    for (struct ckvi_node *n = ckvi_map_next(&map, NULL); n; n = ckvi_map_next(&map, n))
        visited++;
    assert_int_equal(visited, MANY);
    while (ckvi_map_any(&map))
        ckvi_map_remove(&map, ckvi_map_any(&map));
    assert_int_equal(map.count, 0);
    free(things);
}

static void without_memory_chains_grow_longer(void **state)
{
    struct thing things[200];
    (void)state;
    alloc.fail_at = alloc.call_count + 1;
    alloc.fail_on = true;
    for (int i = 0; i < 200; i++)
        ckvi_map_insert(&map, &things[i].node, (uint64_t)i);
    for (int i = 0; i < 200; i++)
        assert_ptr_equal(ckvi_map_first(&map, (uint64_t)i), &things[i].node);
    alloc.fail_on = false;
    alloc.fail_at = 0;
}

static void listings_are_sorted_and_searched(void **state)
{
    struct ckvi_listing listing = {.alloc = &alloc.alloc};
    struct ckv_error error;
    char name[32];
    (void)state;
    assert_false(ckvi_listing_has(&listing, "x"));
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "name-%d", (i * 7919) % 500);
        assert_ok(ckvi_listing_add(&listing, name, &error), error);
    }
    assert_ok(ckvi_listing_finish(&listing, &error), error);
    assert_int_equal(listing.count, 500);
    for (size_t i = 1; i < listing.count; i++)
        assert_true(strcmp(listing.names[i - 1], listing.names[i]) < 0);
    assert_true(ckvi_listing_has(&listing, "name-0"));
    assert_true(ckvi_listing_has(&listing, "name-499"));
    assert_false(ckvi_listing_has(&listing, "name-500"));
    assert_false(ckvi_listing_has(&listing, ""));
    ckvi_listing_deinit(&listing);
    ckvi_listing_deinit(&listing);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(equal_hashes_stay_apart),
        TEST(many_nodes_are_found_after_growing),
        TEST(without_memory_chains_grow_longer),
        TEST(listings_are_sorted_and_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
