/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause). */

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_numbers.h>
#include <uct/ib/varuna/ucx/varuna_random.h>
}

#include <set>
#include <vector>

class test_varuna_secret : public ucs::test {
protected:
    /* The key of SipHash's own test vectors: bytes 0 to 15 */
    static constexpr uct_varuna_secret_key_t KEY = {
        {0x0706050403020100ul, 0x0f0e0d0c0b0a0908ul}
    };
};

constexpr uct_varuna_secret_key_t test_varuna_secret::KEY;

UCS_TEST_F(test_varuna_secret, hash_is_siphash) {
    /* vectors_sip64[8], of the bytes 0 to 7 */
    EXPECT_EQ(0x93f5f5799a932462ul,
              uct_varuna_secret_hash(&KEY, 0x0706050403020100ul));
}

UCS_TEST_F(test_varuna_secret, digest_is_siphash) {
    const std::vector<uint8_t> bytes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};

    /* The example of the paper on SipHash, and vectors_sip64[0] and [8] */
    EXPECT_EQ(0xa129ca6149be45e5ul,
              uct_varuna_secret_digest(&KEY, bytes.data(), bytes.size()));
    EXPECT_EQ(0x726fdb47dd0e0e31ul, uct_varuna_secret_digest(&KEY, bytes.data(), 0));
    EXPECT_EQ(0x93f5f5799a932462ul, uct_varuna_secret_digest(&KEY, bytes.data(), 8));
}

UCS_TEST_F(test_varuna_secret, differs_by_peer_and_key) {
    uct_varuna_secret_key_t other = KEY;
    std::set<uint64_t> secrets;

    other.words[1] ^= 1;
    for (uint64_t uuid = 0; uuid < 1000; ++uuid) {
        secrets.insert(uct_varuna_secret_of(&KEY, uuid));
        secrets.insert(uct_varuna_secret_of(&other, uuid));
        EXPECT_EQ(uct_varuna_secret_of(&KEY, uuid),
                  uct_varuna_secret_of(&KEY, uuid));
    }
    EXPECT_EQ(2000u, secrets.size());
    EXPECT_EQ(0u, secrets.count(0));
}

UCS_TEST_F(test_varuna_secret, random) {
    std::set<uint64_t> numbers;
    uint64_t number;

    for (unsigned i = 0; i < 100; ++i) {
        ASSERT_UCS_OK(uct_varuna_random_number(&number));
        EXPECT_NE(0u, number);
        numbers.insert(number);
    }
    EXPECT_EQ(100u, numbers.size());
}
