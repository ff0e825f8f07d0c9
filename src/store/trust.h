/* Which directories a store accepts. */
#ifndef COLDKV_STORE_TRUST_H
#define COLDKV_STORE_TRUST_H

#include "store/state.h"

/* DENIED unless the directory belongs to this user and nobody else may write to it. */
enum ckv_status ckvi_trust_check(const struct ckv_store *store,
                                 const struct ckv_store_options *options,
                                 struct ckv_error *error);

/* REFUSED when the directory is neither empty nor a store and options do not insist. */
enum ckv_status ckvi_init_check(const struct ckv_store *store,
                                const struct ckv_store_options *options,
                                struct ckv_error *error);

#endif
