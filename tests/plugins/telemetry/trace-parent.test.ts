/** The header `traceparent`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readTraceParent, writeTraceParent } from '../../../plugins/common/wire/trace.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

test('a valid header is decoded, and encoded unchanged', () => {
  for (const flags of ['00', '01']) {
    const text = `00-${traceId}-${spanId}-${flags}`;
    const read = readTraceParent(text)!;
    assert.deepEqual({ traceId: read.traceId, spanId: read.spanId }, { traceId, spanId });
    assert.equal(writeTraceParent(read), text);
  }
});

test('a later version may have more fields; unknown flags are not passed on', () => {
  assert.equal(writeTraceParent(readTraceParent(`01-${traceId}-${spanId}-ff-more`)!), `00-${traceId}-${spanId}-01`);
});

test('a malformed header begins a new trace', () => {
  for (const text of [
    undefined,
    '',
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01-more`,
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
  ])
    assert.equal(readTraceParent(text), undefined, String(text));
});
