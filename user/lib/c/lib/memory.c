/* Parts of the heap that newlib 3.3 lacks: `calloc` that notices when the product is too large, and `posix_memalign`, which its own
 * `aligned_alloc` is made of. */

#include <errno.h>
#include <malloc.h>
#include <reent.h>
#include <stdlib.h>
#include <string.h>

void *_calloc_r(struct _reent *reent, size_t count, size_t size)
{
    size_t len;
    void *block;

    if (__builtin_mul_overflow(count, size, &len)) {
        reent->_errno = ENOMEM;
        return NULL;
    }
    block = _malloc_r(reent, len);
    return block == NULL ? NULL : memset(block, 0, len);
}

void *calloc(size_t count, size_t size)
{
    return _calloc_r(_REENT, count, size);
}

int posix_memalign(void **block, size_t align, size_t len)
{
    if (align < sizeof(void *) || (align & (align - 1)) != 0)
        return EINVAL;
    *block = memalign(align, len);
    return *block == NULL ? ENOMEM : 0;
}
