/* Writes a tar archive (POSIX ustar). */
#include "report/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 512, NAME_MAX_BYTES = 100 };

/* IEEE Std 1003.1, pax, "ustar Interchange Format". Numbers are octal, NUL-terminated. */
struct header {
    char name[NAME_MAX_BYTES];
    char mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
    char type;
    char linkname[100], magic[6], version[2], uname[32], gname[32], devmajor[8], devminor[8];
    char prefix[155];
    char padding[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

static const uint64_t size_max = 077777777777; /* eleven octal digits */

static void put_zeros(struct strbuf *archive, size_t count)
{
    static const char zeros[BLOCK];
    strbuf_append(archive, zeros, count);
}

/* The sum of all bytes, with the checksum itself taken as blanks. */
static void set_checksum(struct header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    unsigned sum = 0;
    memset(header->checksum, ' ', sizeof header->checksum);
    for (size_t i = 0; i < sizeof *header; i++)
        sum += bytes[i];
    snprintf(header->checksum, sizeof header->checksum, "%06o", sum & 0777777);
}

int tar_add(struct strbuf *archive, const char *name, int64_t time_s, const char *data,
            size_t length, struct err *err)
{
    struct header header = {.type = '0', .mode = "0000644", .uid = "0000000", .gid = "0000000"};
    const size_t name_length = strlen(name);
    const uint64_t time = time_s > 0 ? (uint64_t)time_s : 0;
    if (name_length > sizeof header.name)
        return err_set(err, -ENAMETOOLONG, "%.60s...: the name is too long for an archive", name);
    if (length > size_max || time > size_max)
        return err_set(err, -EFBIG, "%s: too large for an archive", name);
    memcpy(header.name, name, name_length);
    snprintf(header.size, sizeof header.size, "%011llo", (unsigned long long)length);
    snprintf(header.mtime, sizeof header.mtime, "%011llo", (unsigned long long)time);
    memcpy(header.magic, "ustar", 6);
    memcpy(header.version, "00", 2);
    memcpy(header.uname, "root", 4);
    memcpy(header.gname, "root", 4);
    snprintf(header.devmajor, sizeof header.devmajor, "%07o", 0);
    snprintf(header.devminor, sizeof header.devminor, "%07o", 0);
    set_checksum(&header);
    strbuf_append(archive, (const char *)&header, sizeof header);
    strbuf_append(archive, data, length);
    put_zeros(archive, (BLOCK - length % BLOCK) % BLOCK);
    return 0;
}

void tar_end(struct strbuf *archive)
{
    put_zeros(archive, BLOCK);
    put_zeros(archive, BLOCK);
}
