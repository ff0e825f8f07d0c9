/* What the parts of the faulty io share. */
#ifndef COLDKV_TESTS_FAULTY_CALLS_H
#define COLDKV_TESTS_FAULTY_CALLS_H

#include "lib/faulty_io.h"

/* Counts, traces and announces one call; true when *fault says how it goes wrong. */
bool test_faulty_meet(struct test_faulty_io *faulty, enum test_call call,
                      const char *name, const char *to, struct test_fault *fault);
/* The failure that the fault stands for. */
enum ckv_status test_faulty_report(const struct test_fault *fault, enum test_call call,
                                   struct ckv_error *error);

/* faulty_calls.c and faulty_transfers.c: each fills its members of the table. */
void test_faulty_fill_table(struct test_faulty_io *faulty);
void test_faulty_fill_transfers(struct test_faulty_io *faulty);
void test_faulty_drop_batches(struct test_faulty_io *faulty);

#endif
