/* Patterns of node names. They are parsed here, since text from a file must never reach printf as a
 * format. */
#include "device/sim/node_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { NAME_MAX_BYTES = 255 };

enum piece { PIECE_END, PIECE_BYTE, PIECE_NUMBER, PIECE_BAD };

/* Reads the next piece of the pattern. */
static enum piece next_piece(const char **pattern, char *out_byte, int *out_width)
{
    const char *at = *pattern;
    if (!*at)
        return PIECE_END;
    *out_byte = *at;
    if (*at++ != '%' || *at == '%') {
        *pattern = *out_byte == '%' ? at + 1 : at;
        return PIECE_BYTE;
    }
    *out_width = 0;
    if (at[0] == '0' && at[1] >= '1' && at[1] <= '9') {
        *out_width = at[1] - '0';
        at += 2;
    }
    *pattern = at + 1;
    return *at == 'd' ? PIECE_NUMBER : PIECE_BAD;
}

int sim_node_name_check(const char *pattern, uint32_t count, struct err *err)
{
    if (!*pattern || strlen(pattern) > NAME_MAX_BYTES)
        return err_set(err, -EINVAL, "a node's name has 1 to %d bytes", NAME_MAX_BYTES);
    const char *rest = pattern;
    int numbers = 0, width;
    char byte;
    for (;;) {
        enum piece piece = next_piece(&rest, &byte, &width);
        if (piece == PIECE_END)
            break;
        if (piece == PIECE_BAD || (piece == PIECE_NUMBER && numbers++))
            return err_set(err, -EINVAL,
                           "a node's name may have at most one %%d or %%03d, and %%%%");
    }
    if (count > 1 && !numbers)
        return err_set(err, -EINVAL, "%u nodes need a %%d in their name", count);
    return 0;
}

char *sim_node_name(struct arena *arena, const char *pattern, uint64_t number)
{
    struct strbuf name = {0};
    int width;
    char byte;
    for (enum piece piece; (piece = next_piece(&pattern, &byte, &width)) != PIECE_END;) {
        if (piece == PIECE_BYTE)
            strbuf_append(&name, &byte, 1);
        else
            strbuf_printf(&name, "%0*llu", width, (unsigned long long)number);
    }
    char *copy = arena_copy(arena, name.data, name.length);
    strbuf_fini(&name);
    return copy;
}
