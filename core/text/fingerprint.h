/* core/text: hashing, splitting, looking up and counting strings. Knows nothing of datasets and layers.
 *
 * fingerprint.h: hashes that TensorFlow's ops for strings use, so that Keras' layers give the same numbers here. */
#ifndef FLOW_TEXT_FINGERPRINT_H
#define FLOW_TEXT_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

/* FarmHash's Fingerprint64 (Pike, Google; farmhashna::Hash64): tf.strings.to_hash_bucket_fast. */
uint64_t flow_fingerprint(const void *bytes, size_t count);
/* SipHash-2-4 (Aumasson, Bernstein 2012) with this key: tf.strings.to_hash_bucket_strong. */
uint64_t flow_sip_hash(const uint64_t key[2], const void *bytes, size_t count);
/* TensorFlow's FingerprintCat64 (core/platform/fingerprint.h): of two fingerprints, of which the order counts. */
uint64_t flow_fingerprint_join(uint64_t first, uint64_t second);

#endif
