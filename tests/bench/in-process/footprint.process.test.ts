/** What a request costs may not grow unseen: bytes on the heap and promises, which are the same on any machine under any load. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countsOf, survivorsOf } from './footprints.ts';

/** What was reached, and 5 %. Lower them when a change lowers the counts; a change that has to raise them says why. */
const most = {
  passthrough: { bytes: 18_700 * 1.05, promises: 3 * 1.05 },
  // Tools and models that a request names are checked against prices: 350 bytes.
  relay: { bytes: 34_000 * 1.05, promises: 4 * 1.05 },
  // With a request's share of one batch of 480 in the ledger and in the request log. What later calls without a report are
  // estimated by is remembered of each: 650 bytes.
  full: { bytes: 62_100 * 1.05, promises: 8.2 * 1.05 },
} as const;

for (const name of ['passthrough', 'relay', 'full'] as const) {
  test(`bytes and promises of a request: ${name}`, async () => {
    const { bytes, promises } = await countsOf(name);
    const found = `${name}: ${Math.round(bytes)} bytes, ${promises.toFixed(2)} promises a request`;
    assert(bytes > 0 && bytes <= most[name].bytes, found);
    assert(promises > 0 && promises <= most[name].promises, found);
  });
}

// About 1,000 belong to rows and records that wait for the database.
for (const name of ['full', 'translated'] as const) {
  test(`most bytes that a request allocates are collected while they are young: ${name}`, async () => {
    const bytes = await survivorsOf(name);
    assert(bytes < 2_500, `${Math.round(bytes)} bytes of a request survived`);
  });
}
