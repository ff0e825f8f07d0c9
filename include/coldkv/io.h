/*
 * The one seam between the library and the operating system: a table of functions on
 * directory handles and single names. ckv_io_posix() is the real one; tests and embedders
 * may bring others. Everything above this layer reaches the disk only through it.
 *
 * Callers use the ckv_io_* functions below, not the table's members: they check names
 * in one place ('/', ".", "..", empty, over 255 bytes: INVALID) and then call the table.
 *
 * Files are opened without following links and must be regular (else DENIED). Every
 * failure carries errno in `error`. Thread rule: a table may be used from many threads at
 * once; one file's transfers belong to one thread at a time.
 */
#ifndef COLDKV_IO_H
#define COLDKV_IO_H

#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Handles by value; -1 means none. What the number is, only the table knows. */
struct ckv_io_dir {
    intptr_t handle;
};
struct ckv_io_file {
    intptr_t handle;
};
#ifdef __cplusplus
#define CKV_IO_DIR_NONE (ckv_io_dir{-1})
#define CKV_IO_FILE_NONE (ckv_io_file{-1})
#else
#define CKV_IO_DIR_NONE ((struct ckv_io_dir){-1})
#define CKV_IO_FILE_NONE ((struct ckv_io_file){-1})
#endif

/** Longest name of a file or folder, in bytes. */
#define CKV_IO_NAME_MAX 255

enum ckv_io_type {
    CKV_IO_TYPE_FILE = 1,
    CKV_IO_TYPE_DIR = 2,
    CKV_IO_TYPE_OTHER = 3, /**< link, FIFO, device, socket */
};

struct ckv_io_stat {
    enum ckv_io_type type;
    uint64_t size_bytes;
    uint64_t allocated_bytes; /**< what it takes on the disk */
    uint64_t device;
    uint64_t inode;
    uint64_t link_count;
    uint32_t owner_uid;
    uint32_t mode; /**< permission bits, 07777 */
    int64_t mtime_ns;
    int64_t ctime_ns;
};

struct ckv_io_space {
    uint64_t total_bytes;
    uint64_t free_bytes; /**< available to this user */
};

enum ckv_io_open_mode {
    CKV_IO_READ = 1,
    CKV_IO_READ_WRITE = 2,
    CKV_IO_CREATE_NEW = 3, /**< read-write; mode 0600; EXISTS when the name is taken */
    CKV_IO_CREATE_OR_OPEN = 4, /**< read-write; mode 0600 when it is made */
};

enum ckv_io_op { CKV_IO_OP_READ = 1, CKV_IO_OP_WRITE = 2 };

/**
 * One transfer. The caller fills the first five members and keeps request and memory
 * alive until wait returns; wait fills the last three. A transfer is complete or failed:
 * interrupted and partial system calls are continued inside. `done_bytes` is less than
 * `size_bytes` only for a read that met the end of the file (status OK) or on failure.
 */
struct ckv_io_request {
    enum ckv_io_op op;
    struct ckv_io_file file;
    void *data; /* read: filled; write: only read from */
    size_t size_bytes;
    uint64_t offset;
    size_t done_bytes;
    enum ckv_status status;
    int os_errno;
};

enum ckv_io_advice {
    CKV_IO_ADVICE_SEQUENTIAL = 1,
    CKV_IO_ADVICE_WILLNEED = 2,
    CKV_IO_ADVICE_DONTNEED = 3,
};

enum ckv_io_lock_mode { CKV_IO_LOCK_SHARED = 1, CKV_IO_LOCK_EXCLUSIVE = 2 };

/** Called once per name in a folder ("." and ".." left out, order unspecified). Anything
 *  but OK ends the listing with that status. `type` may be OTHER where only stat knows.
 */
typedef enum ckv_status (*ckv_io_list_fn)(void *ctx, const char *name);

struct ckv_io {
    void *ctx;
    /** How transfers are done, for reports: "posix", "memory", … Static storage. */
    const char *name;

    /* Folders. open_root is the only one that takes a path. `create` makes the last
     * component (mode 0700) when it is missing; *made tells whether it did (may be NULL).
     */
    enum ckv_status (*open_root)(void *ctx, const char *path, bool create, bool *made,
                                 struct ckv_io_dir *out, struct ckv_error *error);
    enum ckv_status (*open_dir)(void *ctx, struct ckv_io_dir parent, const char *name,
                                bool create, bool *made, struct ckv_io_dir *out,
                                struct ckv_error *error);
    void (*close_dir)(void *ctx, struct ckv_io_dir dir);
    enum ckv_status (*list)(void *ctx, struct ckv_io_dir dir, ckv_io_list_fn fn,
                            void *fn_ctx, struct ckv_error *error);
    enum ckv_status (*sync_dir)(void *ctx, struct ckv_io_dir dir,
                                struct ckv_error *error);
    enum ckv_status (*space)(void *ctx, struct ckv_io_dir dir, struct ckv_io_space *out,
                             struct ckv_error *error);

    /* Names. */
    enum ckv_status (*stat_dir)(void *ctx, struct ckv_io_dir dir, struct ckv_io_stat *out,
                                struct ckv_error *error);
    enum ckv_status (*stat_name)(void *ctx, struct ckv_io_dir dir, const char *name,
                                 struct ckv_io_stat *out, struct ckv_error *error);
    enum ckv_status (*rename)(void *ctx, struct ckv_io_dir from_dir, const char *from,
                              struct ckv_io_dir to_dir, const char *to,
                              struct ckv_error *error);
    enum ckv_status (*link)(void *ctx, struct ckv_io_dir from_dir, const char *from,
                            struct ckv_io_dir to_dir, const char *to,
                            struct ckv_error *error);
    enum ckv_status (*remove)(void *ctx, struct ckv_io_dir dir, const char *name,
                              struct ckv_error *error);
    /** EXISTS when something is in it. */
    enum ckv_status (*remove_dir)(void *ctx, struct ckv_io_dir dir, const char *name,
                                  struct ckv_error *error);

    /* Files. */
    enum ckv_status (*open_file)(void *ctx, struct ckv_io_dir dir, const char *name,
                                 enum ckv_io_open_mode mode, struct ckv_io_file *out,
                                 struct ckv_error *error);
    void (*close_file)(void *ctx, struct ckv_io_file file);
    enum ckv_status (*stat_file)(void *ctx, struct ckv_io_file file,
                                 struct ckv_io_stat *out, struct ckv_error *error);
    enum ckv_status (*set_mtime)(void *ctx, struct ckv_io_file file, int64_t mtime_ns,
                                 struct ckv_error *error);
    /** Sets the length; what grows reads as zero and takes no space yet. */
    enum ckv_status (*truncate)(void *ctx, struct ckv_io_file file, uint64_t size_bytes,
                                struct ckv_error *error);
    /** Reserves disk blocks for [0, size); UNSUPPORTED where the file system cannot. */
    enum ckv_status (*allocate)(void *ctx, struct ckv_io_file file, uint64_t size_bytes,
                                struct ckv_error *error);
    /** Data and length reach the medium before it returns. */
    enum ckv_status (*sync_file)(void *ctx, struct ckv_io_file file,
                                 struct ckv_error *error);
    /** Never waits: AGAIN when another open file holds it. UNSUPPORTED where locks are
     * not. A lock belongs to the open file and ends with it. */
    enum ckv_status (*lock)(void *ctx, struct ckv_io_file file,
                            enum ckv_io_lock_mode mode, struct ckv_error *error);
    enum ckv_status (*unlock)(void *ctx, struct ckv_io_file file,
                              struct ckv_error *error);
    /** A hint; failure is not reported. size 0 = to the end. */
    void (*advise)(void *ctx, struct ckv_io_file file, uint64_t offset,
                   uint64_t size_bytes, enum ckv_io_advice advice);

    /* Transfers. submit takes all requests or none; wait returns when all of them are
     * complete or failed, with the status of the first that failed. Between the two the
     * caller may compute. */
    enum ckv_status (*submit)(void *ctx, struct ckv_io_request *requests, size_t count,
                              struct ckv_error *error);
    enum ckv_status (*wait)(void *ctx, struct ckv_io_request *requests, size_t count,
                            struct ckv_error *error);

    /* Process. */
    enum ckv_status (*random)(void *ctx, void *data, size_t size,
                              struct ckv_error *error);
    uint32_t (*effective_uid)(void *ctx);
};

/** The POSIX implementation. Static storage, no state, thread safe. */
CKV_API const struct ckv_io *ckv_io_posix(void);

/** Whether `name` may be given to the functions below. */
CKV_API bool ckv_io_name_valid(const char *name);

/* The same operations with names checked. `io` is never NULL. */
CKV_API enum ckv_status ckv_io_open_root(const struct ckv_io *io, const char *path,
                                         bool create, bool *made, struct ckv_io_dir *out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_open_dir(const struct ckv_io *io, struct ckv_io_dir parent,
                                        const char *name, bool create, bool *made,
                                        struct ckv_io_dir *out,
                                        struct ckv_error *error) CKV_WARN_UNUSED;
/** Closes and sets the handle to none; none is fine. */
CKV_API void ckv_io_close_dir(const struct ckv_io *io, struct ckv_io_dir *dir);
CKV_API enum ckv_status ckv_io_list(const struct ckv_io *io, struct ckv_io_dir dir,
                                    ckv_io_list_fn fn, void *fn_ctx,
                                    struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_sync_dir(const struct ckv_io *io, struct ckv_io_dir dir,
                                        struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_get_space(const struct ckv_io *io, struct ckv_io_dir dir,
                                         struct ckv_io_space *out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_stat_dir(const struct ckv_io *io, struct ckv_io_dir dir,
                                        struct ckv_io_stat *out,
                                        struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_stat_name(const struct ckv_io *io, struct ckv_io_dir dir,
                                         const char *name, struct ckv_io_stat *out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_rename(const struct ckv_io *io, struct ckv_io_dir from_dir,
                                      const char *from, struct ckv_io_dir to_dir,
                                      const char *to,
                                      struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_link(const struct ckv_io *io, struct ckv_io_dir from_dir,
                                    const char *from, struct ckv_io_dir to_dir,
                                    const char *to,
                                    struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_remove(const struct ckv_io *io, struct ckv_io_dir dir,
                                      const char *name,
                                      struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_remove_dir(const struct ckv_io *io, struct ckv_io_dir dir,
                                          const char *name,
                                          struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_open_file(const struct ckv_io *io, struct ckv_io_dir dir,
                                         const char *name, enum ckv_io_open_mode mode,
                                         struct ckv_io_file *out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
/** Closes and sets the handle to none; none is fine. */
CKV_API void ckv_io_close_file(const struct ckv_io *io, struct ckv_io_file *file);
CKV_API enum ckv_status ckv_io_stat_file(const struct ckv_io *io, struct ckv_io_file file,
                                         struct ckv_io_stat *out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;

/** submit + wait of one transfer; a read may end early at the end of the file. */
CKV_API enum ckv_status ckv_io_read(const struct ckv_io *io, struct ckv_io_file file,
                                    void *data, size_t size, uint64_t offset,
                                    size_t *done_bytes,
                                    struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_io_write(const struct ckv_io *io, struct ckv_io_file file,
                                     const void *data, size_t size, uint64_t offset,
                                     struct ckv_error *error) CKV_WARN_UNUSED;

#ifdef __cplusplus
}
#endif

#endif
