/* What the parts of the POSIX table share. A handle is a file descriptor. */
#ifndef COLDKV_IO_POSIX_H
#define COLDKV_IO_POSIX_H

#include <coldkv/io.h>
#include <sys/stat.h>

/* Fills `error` with "<operation> \"<name>\": <reason>" (name NULL: without it) and gives
 * the status for os_errno. */
enum ckv_status ckvi_posix_fail(struct ckv_error *error, int os_errno,
                                const char *operation, const char *name);
/* The same with a status that the caller chose. */
enum ckv_status ckvi_posix_fail_as(struct ckv_error *error, enum ckv_status status,
                                   int os_errno, const char *operation, const char *name);

void ckvi_posix_convert_stat(const struct stat *from, struct ckv_io_stat *to);

/* Makes what was written through `fd` durable: data and length at least. 0 or -1. */
int ckvi_posix_sync(int fd);

/* posix_dir.c: folders and names */
enum ckv_status ckvi_posix_open_root(void *ctx, const char *path, bool create, bool *made,
                                     struct ckv_io_dir *out, struct ckv_error *error);
enum ckv_status ckvi_posix_open_dir(void *ctx, struct ckv_io_dir parent, const char *name,
                                    bool create, bool *made, struct ckv_io_dir *out,
                                    struct ckv_error *error);
void ckvi_posix_close_dir(void *ctx, struct ckv_io_dir dir);
enum ckv_status ckvi_posix_list(void *ctx, struct ckv_io_dir dir, ckv_io_list_fn fn,
                                void *fn_ctx, struct ckv_error *error);
enum ckv_status ckvi_posix_sync_dir(void *ctx, struct ckv_io_dir dir,
                                    struct ckv_error *error);
enum ckv_status ckvi_posix_space(void *ctx, struct ckv_io_dir dir,
                                 struct ckv_io_space *out, struct ckv_error *error);
enum ckv_status ckvi_posix_stat_dir(void *ctx, struct ckv_io_dir dir,
                                    struct ckv_io_stat *out, struct ckv_error *error);
enum ckv_status ckvi_posix_stat_name(void *ctx, struct ckv_io_dir dir, const char *name,
                                     struct ckv_io_stat *out, struct ckv_error *error);
enum ckv_status ckvi_posix_rename(void *ctx, struct ckv_io_dir from_dir, const char *from,
                                  struct ckv_io_dir to_dir, const char *to,
                                  struct ckv_error *error);
enum ckv_status ckvi_posix_link(void *ctx, struct ckv_io_dir from_dir, const char *from,
                                struct ckv_io_dir to_dir, const char *to,
                                struct ckv_error *error);
enum ckv_status ckvi_posix_remove(void *ctx, struct ckv_io_dir dir, const char *name,
                                  struct ckv_error *error);
enum ckv_status ckvi_posix_remove_dir(void *ctx, struct ckv_io_dir dir, const char *name,
                                      struct ckv_error *error);

/* posix_file.c: open files */
enum ckv_status ckvi_posix_open_file(void *ctx, struct ckv_io_dir dir, const char *name,
                                     enum ckv_io_open_mode mode, struct ckv_io_file *out,
                                     struct ckv_error *error);
void ckvi_posix_close_file(void *ctx, struct ckv_io_file file);
enum ckv_status ckvi_posix_stat_file(void *ctx, struct ckv_io_file file,
                                     struct ckv_io_stat *out, struct ckv_error *error);
enum ckv_status ckvi_posix_set_mtime(void *ctx, struct ckv_io_file file, int64_t mtime_ns,
                                     struct ckv_error *error);
enum ckv_status ckvi_posix_truncate(void *ctx, struct ckv_io_file file,
                                    uint64_t size_bytes, struct ckv_error *error);
enum ckv_status ckvi_posix_allocate(void *ctx, struct ckv_io_file file,
                                    uint64_t size_bytes, struct ckv_error *error);
enum ckv_status ckvi_posix_sync_file(void *ctx, struct ckv_io_file file,
                                     struct ckv_error *error);
enum ckv_status ckvi_posix_lock(void *ctx, struct ckv_io_file file,
                                enum ckv_io_lock_mode mode, struct ckv_error *error);
enum ckv_status ckvi_posix_unlock(void *ctx, struct ckv_io_file file,
                                  struct ckv_error *error);
void ckvi_posix_advise(void *ctx, struct ckv_io_file file, uint64_t offset,
                       uint64_t size_bytes, enum ckv_io_advice advice);

/* posix_transfer.c */
enum ckv_status ckvi_posix_submit(void *ctx, struct ckv_io_request *requests,
                                  size_t count, struct ckv_error *error);
enum ckv_status ckvi_posix_wait(void *ctx, struct ckv_io_request *requests, size_t count,
                                struct ckv_error *error);

/* posix_random.c */
enum ckv_status ckvi_posix_random(void *ctx, void *data, size_t size,
                                  struct ckv_error *error);

#endif
