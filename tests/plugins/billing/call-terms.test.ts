/** What is set aside for a call: against whatever its answer can come to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type HoldRules, termsOf } from '../../../plugins/billing/reservations/call-terms.ts';
import { boundOf, chargeFor } from '../../../plugins/billing/reservations/charge.ts';
import { parseRatio, parseUsd } from '../../../plugins/common/domain/money.ts';
import { plan } from '../../../plugins/common/domain/plans.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import { fc } from '../../helpers/properties.ts';
import { newCall } from './world.ts';

const price = {
  input: parseUsd('2'),
  cache_write_1h: parseUsd('4'),
  output: parseUsd('10'),
  reasoning: parseUsd('12'),
};
const sizes = fc.option(fc.integer({ min: 1, max: 300_000 }), { nil: undefined });
const requested = fc.record({
  inputTokens: fc.nat(200_000),
  maxOutputTokens: fc.option(fc.integer({ min: 1, max: 500_000 }), { nil: undefined }),
  choices: fc.integer({ min: 1, max: 8 }),
});
const entries = fc.record({ maxOutputTokens: sizes, contextTokens: sizes });
const multipliers = fc.constantFrom('1', '2', '0.333333', '1.6');
const share = fc.double({ min: 0, max: 1, noNaN: true });

function termsFor(call: object, entry: object, multiplier: string, rules: HoldRules) {
  const terms = { name: 'p', limits: {}, models: undefined, multiplier: parseRatio(multiplier) };
  const model = { ...entry, prices: flatBook(price, 'v1') };
  return termsOf(newCall({ call, model, facts: [[plan, terms]] }), rules, 0);
}

test('a hold that covers the whole answer covers every answer that the model and the client allow', () => {
  const rules: HoldRules = { stepTokens: 4_096, nonStreaming: 'max' };
  fc.assert(
    fc.property(
      requested,
      entries,
      multipliers,
      share,
      share,
      fc.boolean(),
      (call, entry, multiplier, part, thought, cached) => {
        const terms = termsFor(call, entry, multiplier, rules);
        // What is known of the longest answer, by the model first.
        const most = entry.maxOutputTokens ?? entry.contextTokens ?? Math.min(call.maxOutputTokens ?? 4_096, 500_000);
        const each = Math.min(call.maxOutputTokens ?? most, most);
        const output = Math.floor(each * call.choices * part);
        const reasoning = Math.floor(output * thought);
        const input = cached ? { cache_write_1h: call.inputTokens } : { input: call.inputTokens };
        const usage = { ...input, reasoning, output: output - reasoning };
        assert.ok(chargeFor(terms, usage, {}, []).cost <= boundOf(terms, terms.outputTokens));
      },
    ),
    { numRuns: 2_000 },
  );
});

test("pictures of a vendor's tool are held only where the request allows them", () => {
  const drawing = { ...price, output_image: parseUsd('30') };
  const heldFor = (call: object, traits: object, of: object = drawing) => {
    const request = { inputTokens: 0, maxOutputTokens: 1_000, ...call };
    const model = { prices: flatBook(of, 'v1'), maxOutputTokens: 1_000, contextTokens: 2_000, traits };
    const terms = termsOf(newCall({ call: request, model }), { stepTokens: 4_096, nonStreaming: 'max' }, 0);
    return boundOf(terms, terms.outputTokens);
  };
  const text = 12_000_000n;
  const answer = { text_only: true };
  assert.equal(heldFor({}, answer), text);
  assert.equal(heldFor({ toolCalls: 3 }, answer), text);
  assert.equal(heldFor({ images: 2 }, answer), text + 2n * 4_160n * 30_000n);
  assert.equal(heldFor({ images: 2 }, answer, { ...drawing, image: parseUsd('0.04') }), text + 80_000_000n);
  // A model that draws by itself: any token may be one of a picture.
  assert.equal(heldFor({}, {}), 30_000_000n);
});

test('several whole answers at once overdraw an account no further than one does', () => {
  fc.assert(
    fc.property(
      requested,
      entries.filter((entry) => (entry.maxOutputTokens ?? entry.contextTokens) !== undefined),
      fc.integer({ min: 1, max: 10_000 }),
      (call, entry, stepTokens) => {
        const terms = termsFor(call, entry, '1', { stepTokens, nonStreaming: 'estimate' });
        const longest = entry.maxOutputTokens ?? entry.contextTokens!;
        const each = Math.min(call.maxOutputTokens ?? longest, longest);
        const worst = chargeFor(terms, { input: call.inputTokens, reasoning: each * call.choices }, {}, []).cost;
        // What `check` prints for one call.
        const reported = boundOf({ ...terms, inputTokens: 0 }, Math.max(0, longest - stepTokens));
        assert.ok(worst - boundOf(terms, terms.outputTokens) <= reported);
      },
    ),
    { numRuns: 2_000 },
  );
});

test('a stream holds one step for each answer at most, as does a whole one, and never more than the client requested', () => {
  fc.assert(
    fc.property(
      requested,
      entries,
      fc.boolean(),
      fc.integer({ min: 1, max: 10_000 }),
      (call, entry, stream, stepTokens) => {
        const nonStreaming = stream ? 'max' : 'estimate';
        const { outputTokens } = termsFor({ ...call, stream }, entry, '1', { stepTokens, nonStreaming });
        if (stream || call.choices === 1) assert.ok(outputTokens <= stepTokens * call.choices);
        if (call.maxOutputTokens !== undefined) assert.ok(outputTokens <= call.maxOutputTokens * call.choices);
        assert.ok(outputTokens > 0);
      },
    ),
  );
});
