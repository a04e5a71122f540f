/* Digests against the examples of FIPS 180-4, and of lengths around the end of a block. */
#include "../check.h"

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

static void published(void **state)
{
    (void)state;
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
         "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char digest[SHA256_TEXT];
        sha256_text(cases[i].text, strlen(cases[i].text), digest);
        assert_string_equal(digest, cases[i].digest);
    }
}

static void million(void **state)
{
    (void)state;
    enum { COUNT = 1000000 };
    char digest[SHA256_TEXT], *text = malloc(COUNT);
    memset(text, 'a', COUNT);
    sha256_text(text, COUNT, digest);
    assert_string_equal(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(text);
}

/* The padding takes a second block from 56 bytes on. */
static void block_ends(void **state)
{
    (void)state;
    static const struct {
        size_t length;
        const char *digest;
    } cases[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[64], digest[SHA256_TEXT];
        memset(text, 'a', sizeof text);
        sha256_text(text, cases[i].length, digest);
        assert_string_equal(digest, cases[i].digest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published), cmocka_unit_test(million),
                                       cmocka_unit_test(block_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
