/* Names become pseudonyms: the same one everywhere, and nothing else changes. */
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "inventory/anonymous.h"
#include "rich.h"

static struct pseudonyms *sealed(void)
{
    struct pseudonyms *names = NULL;
    names = pseudonyms_create();
    pseudonyms_add(names, PSEUDONYM_NODE, "gpu10.cluster.example");
    pseudonyms_add(names, PSEUDONYM_NODE, "gpu1");
    pseudonyms_add(names, PSEUDONYM_NODE, "gpu1");
    pseudonyms_add(names, PSEUDONYM_SLOT, "0000:1b:00.0");
    pseudonyms_add(names, PSEUDONYM_SERIAL, "1650123456789");
    pseudonyms_seal(names);
    return names;
}

static const struct {
    const char *text, *clean;
} texts[] = {
    {"", ""},
    {"worker killed by signal 11 during l2.size", "worker killed by signal 11 during l2.size"},
    {"gpu1 and gpu10 and gpu100", "node-0000-0001 and node-0000-0002 and gpu100"},
    {"no answer of gpu10.cluster.example.", "no answer of node-0000-0002."},
    {"gpu1.other.example: gone", "node-0000-0001: gone"},
    {"(gpu1)", "(node-0000-0001)"},
    {"was in slot 0000:1b:00.0 of gpu1", "was in slot 0000:01:00.0 of node-0000-0001"},
    {"slot 00000000:ab:00.0", "slot 0000:02:00.0"},
    {"serial 1650123456789", "serial serial-0000-0001"},
    {"GPU-01234567-89ab-cdef-0123-456789abcdef, then GPU-01234567-89ab-cdef-0123-456789abcdef",
     "GPU-00000000-0000-0000-0000-000000000001, then GPU-00000000-0000-0000-0000-000000000001"},
    {"from 10.1.22.3 to fe80::1 and 00:1a:2b:3c:4d:5e",
     "from (address) to (address) and (address)"},
    {"VBIOS 96.00.89.00.01, 4 of 5: 86.04.12.00.03",
     "VBIOS 96.00.89.00.01, 4 of 5: 86.04.12.00.03"},
    {"ask someone@cluster.example", "ask (address)"},
    {"cannot open /home/someone/x.yaml: no such file", "cannot open (path): no such file"},
    {"\"~/x\", 3 GB/s, /dev/nvidia3", "\"(path)\", 3 GB/s, /dev/nvidia3"},
    {"job-gpu1-x", "job-node-0000-0001-x"},
};

static void cleans_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct pseudonyms *names = sealed();
        char *text = str_copy(texts[i].text);
        pseudonyms_clean(names, &text);
        assert_string_equal(text, texts[i].clean);
        free(text);
        pseudonyms_destroy(names);
    }
}

static void keeps_null(void **state)
{
    (void)state;
    struct pseudonyms *names = sealed();
    char *text = NULL;
    pseudonyms_clean(names, &text);
    pseudonyms_replace(names, PSEUDONYM_GPU, &text);
    assert_null(text);
    pseudonyms_destroy(names);
}

static char *tagged(const char *first, const char *second)
{
    struct pseudonyms *names = NULL;
    char *found = NULL;
    names = pseudonyms_create();
    pseudonyms_add(names, PSEUDONYM_GPU, first);
    pseudonyms_add(names, PSEUDONYM_GPU, second);
    pseudonyms_seal(names);
    found = str_copy(pseudonyms_find(names, PSEUDONYM_GPU, first, strlen(first)));
    pseudonyms_destroy(names);
    return found;
}

/* Files of different fleets can be merged: their pseudonyms differ. */
static void differs_between_fleets(void **state)
{
    (void)state;
    char *a = tagged("GPU-a", "GPU-b"), *again = tagged("GPU-a", "GPU-b"),
         *other = tagged("GPU-a", "GPU-c");
    assert_string_equal(a, again);
    assert_string_not_equal(a, other);
    free(a);
    free(again);
    free(other);
}

/* More names than the table has room for at first; the numbers stay sortable. */
static void holds_many(void **state)
{
    (void)state;
    struct pseudonyms *names = NULL;
    const char *last = "";
    names = pseudonyms_create();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 20000; i++) {
            char name[32];
            snprintf(name, sizeof name, "n%05d", i);
            pseudonyms_add(names, PSEUDONYM_NODE, name);
            const char *found = round ? pseudonyms_find(names, PSEUDONYM_NODE, name, 6) : "~";
            assert_true(strcmp(last, found) < 0 || !round);
            last = round ? found : "";
        }
        if (!round)
            pseudonyms_seal(names);
    }
    pseudonyms_destroy(names);
}

static void filters_commands(void **state)
{
    (void)state;
    static const char *const given[] = {
        "gpumemtopo-survey", "--profile", "quick", "-o",    "gpu1.yaml", "--baseline=/home/x",
        "--seed=5",          "--load",    "60",    "-cfoo", "rest"};
    static const char *const kept[] = {
        "gpumemtopo-survey", "--profile", "quick", "-o", "--baseline",
        "--seed=5",          "--load",    "60",    "-c"};
    char *command[COUNT_OF(given)];
    size_t count = COUNT_OF(given);
    for (size_t i = 0; i < count; i++)
        command[i] = str_copy(given[i]);
    anonymous_command(command, &count);
    assert_int_equal(count, COUNT_OF(kept));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(command[i], kept[i]);
        free(command[i]);
    }
}

/* An anonymous inventory says so, has none of the names, and is read back. */
static void cleans_inventories(void **state)
{
    (void)state;
    struct inventory inventory = {0}, read = {0};
    struct strbuf text = {0};
    struct err err = {0};
    rich_inventory(&inventory);
    const char *uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef";
    free(inventory.gpus[0].uuid);
    inventory.gpus[0].uuid = str_copy(uuid);
    char *node = str_copy(inventory.gpus[0].node);
    anonymous_inventories((struct inventory *const[]){&inventory}, 1, NULL);
    inventory_print(&inventory, &text);
    assert_null(strstr(text.data, uuid));
    assert_null(strstr(text.data, node));
    assert_int_equal(inventory_read_text(text.data, text.length, "x", &read, &err), 0);
    assert_true(read.anonymous);
    free(node);
    strbuf_fini(&text);
    inventory_fini(&inventory);
    inventory_fini(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cleans_texts),     cmocka_unit_test(keeps_null),
        cmocka_unit_test(holds_many),       cmocka_unit_test(differs_between_fleets),
        cmocka_unit_test(filters_commands), cmocka_unit_test(cleans_inventories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
