/** Spans of work that outlives the request that ordered it: linked to the order's, and sampled as it was. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Span, Tracer } from '@opentelemetry/api';
import type { ContextKey } from '../../../core/contract/contract.ts';
import { orderFields, orderTrace, readTraceParent, storedTrace, trace } from '../../../plugins/common/wire/trace.ts';
import { createTracing } from '../../../plugins/telemetry/tracer.ts';
import { fakeExchange } from '../../helpers/fakes.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';
const order = `00-${traceId}-${spanId}-01`;

function tracing() {
  const begun: { name: string; options: Parameters<Tracer['startSpan']>[1]; endedAt?: unknown; status?: unknown }[] =
    [];
  const tracer = {
    startSpan(name: string, options: Parameters<Tracer['startSpan']>[1]) {
      const made: (typeof begun)[number] = { name, options };
      begun.push(made);
      return {
        spanContext: () => ({ traceId: 'f'.repeat(32), spanId: 'e'.repeat(16), traceFlags: 1 }),
        isRecording: () => true,
        setStatus: (status: unknown) => void Object.assign(made, { status }),
        end: (at: unknown) => void Object.assign(made, { endedAt: at }),
      } as unknown as Span;
    },
  } as unknown as Tracer;
  return { begun, made: createTracing(tracer, false, { convention: '1.37', identities: 'plain' }) };
}

test("a vendor's work on an order is a span of its own, linked to that of the order, with the order's request id", () => {
  const { begun, made } = tracing();
  const by = { requestId: 'request-1', accountId: 'account-1', keyId: 'key-1', trace: order };
  const attempt = { number: 2, provider: 'p', model: 'video', protocol: 'v', startedAt: 1_000, durationMs: 60_000 };
  made.add(by, {
    ...{ operation: 'create_video', isGeneration: true },
    attempt: { ...attempt, result: 'unknown', status: undefined },
  });
  const [span] = begun;
  assert.equal(begun.length, 1);
  assert.deepEqual(span!.options!.links, [{ context: { traceId, spanId, traceFlags: 1, isRemote: true } }]);
  assert.deepEqual([span!.options!.startTime, span!.endedAt], [1_000, 61_000]);
  assert.ok(span!.status !== undefined, 'it has failed');
  const { attributes = {} } = span!.options!;
  assert.deepEqual(
    ['request_id', 'account_id', 'key_id', 'operation', 'attempt', 'attempt.result'].map(
      (n) => attributes[`gateway.${n}`],
    ),
    ['request-1', 'account-1', 'key-1', 'create_video', 2, 'unknown'],
  );
  assert.equal(attributes['gen_ai.provider.name'], 'p');
});

test('work on a batch or a file at a vendor has no names for generative AI; an order without a trace has no spans', () => {
  const { begun, made } = tracing();
  const attempt = { number: 1, provider: 'p', model: 'm', protocol: 'chat', startedAt: 1, durationMs: 2 };
  const call = {
    ...{ operation: 'POST /files', isGeneration: false },
    attempt: { ...attempt, result: 'answered', status: 200 },
  } as const;
  made.add({ trace: null }, call);
  assert.equal(begun.length, 0);
  made.add({ trace: order }, call);
  assert.doesNotMatch(JSON.stringify(begun[0]!.options!.attributes), /gen_ai/);
});

test('the span of a batch line is linked to the order, and its exchange has its own trace', () => {
  const { begun, made } = tracing();
  const facts: [ContextKey<unknown>, unknown][] = [[orderTrace, readTraceParent(order)]];
  const exchange = fakeExchange({ facts });
  assert.equal(storedTrace(exchange), null);
  made.begin(exchange);
  assert.deepEqual(begun[0]!.options!.links, [{ context: { traceId, spanId, traceFlags: 1, isRemote: true } }]);
  assert.equal(exchange.find(trace)!.traceId, 'f'.repeat(32));
  assert.equal(storedTrace(exchange), `00-${'f'.repeat(32)}-${'e'.repeat(16)}-01`);
});

test('log lines about ordered work name its request, account, key and trace, as far as they are known', () => {
  const by = { requestId: 'request-1', accountId: 'account-1', keyId: 'key-1', trace: order };
  const known = { request_id: 'request-1', account_id: 'account-1', key_id: 'key-1', trace_id: traceId };
  assert.deepEqual(orderFields(by), known);
  assert.deepEqual(orderFields({ ...by, requestId: undefined, trace: null }), {
    ...{ account_id: 'account-1', key_id: 'key-1' },
  });
});
