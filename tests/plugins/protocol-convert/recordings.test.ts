import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../../core/contract.ts';
import { UpstreamRefusal } from '../../../core/errors.ts';
import type { UsageReport } from '../../../core/vocabulary.ts';
import { families, type Recording, recordings } from '../../helpers/recordings.ts';
import { countedIn, requestFor, sidesOf } from '../../helpers/replay.ts';
import { seededCuts } from '../../helpers/vendor.ts';
import { cutAt, readBody, relay, streamAnswer, wholeAnswer } from './harness.ts';

/** Vendor answers that do not leave byte for byte, each with the rule that says so. */
export const exceptions: Readonly<Record<string, string>> = {
  'google-gemini-2.5-flash-toolresult-jsonarray-stream-8ec6': 'an array stream becomes one object on each line',
  'google-gemini-2.5-flash-tools-thinking-jsonarray-stream-5d3e': 'an array stream becomes one object on each line',
  'google-gemini-2.5-flash-tools-toolresult-jsonarray-stream-77b8': 'an array stream becomes one object on each line',
  'openai-gpt-4o-2024-08-06-midstream-err-stream-69ba': 'organisation, project and address in an error are masked',
  'vertex-midstream-err-stream-3b7a': 'an error object that stands outside any frame is put into one',
};

/** Cut streams may end right after the terminal event; what comes later in a chunk of its own is not waited for. */
const trailing: Readonly<Record<string, string>> = {
  'openrouter-gpt-4.1-mini-tools-usage-cost-stream-bd6d': 'data: [DONE]\n\n',
  'openrouter-gpt-5-nano-thinking-usage-cost-stream-eeac': 'data: [DONE]\n\n',
};

async function play(recording: Recording, upstream: Answer): Promise<{ body: Buffer; report: UsageReport }> {
  const { answer, report } = await relay(requestFor(recording), upstream);
  assert.equal(answer.status, 200);
  return { body: await readBody(answer.body), report: report! };
}

const whole = (recording: Recording) => wholeAnswer(recording.response, recording.status, recording.headers);
const isError = (recording: Recording) =>
  recording.status >= 400 || recording.name === 'azure-openllmetry-testing-text-a84b';

/** The metered classes add up to what the vendor counted; what it did not count is estimated and marked. */
function assertMetered(recording: Recording, report: UsageReport): void {
  const counted = countedIn(recording);
  const sides = sidesOf(report.usage);
  if (counted.input !== undefined) assert.equal(sides.input, counted.input, 'input');
  if (counted.output !== undefined) assert.equal(sides.output, counted.output, 'output');
  if (counted.reasoning !== undefined) assert.equal(report.usage.reasoning, counted.reasoning, 'reasoning');
  if (counted.cached !== undefined) assert.equal(report.usage.cache_read, counted.cached, 'cached');
  const isCounted = counted.input !== undefined && counted.output !== undefined;
  const isFree = recording.path.includes(':countTokens') || Object.keys(report.usage).length === 0;
  if (!isFree) assert.equal(report.estimated, !isCounted, 'estimated');
}

for (const family of families) {
  const answered = recordings(family).filter((one) => !isError(one));

  for (const recording of answered.filter((one) => !one.isStream)) {
    test(`${family} ${recording.name} is relayed byte for byte and metered`, async () => {
      const { body, report } = await play(recording, whole(recording));
      assert.deepEqual(body, recording.response);
      assert.equal(report.terminal, true);
      if (!recording.path.includes('countTokens')) assertMetered(recording, report);
    });
  }

  for (const recording of answered.filter((one) => one.isStream)) {
    const { name, response } = recording;
    test(`${family} ${name} is streamed byte for byte and metered, whole and cut at 50 places`, async () => {
      const at = await play(recording, streamAnswer([response]));
      assertMetered(recording, at.report);
      assert.equal(at.report.terminal, !name.includes('midstream-err'));
      if (name in exceptions) assert.notDeepEqual(at.body, response);
      else assert.deepEqual(at.body, response);
      for (let seed = 1; seed <= 5; seed++) {
        const cut = await play(recording, streamAnswer(cutAt(response, seededCuts(response.length, 50, seed))));
        const tail = trailing[name] ?? '';
        const isShortened = tail !== '' && !cut.body.equals(at.body);
        assert.deepEqual(
          isShortened ? Buffer.concat([cut.body, Buffer.from(tail)]) : cut.body,
          at.body,
          `seed ${seed}`,
        );
        assert.deepEqual(cut.report.usage, at.report.usage, `seed ${seed}`);
      }
      const bytes = await play(
        recording,
        streamAnswer(response.length < 20_000 ? cutAt(response, [...response.keys()]) : [response]),
      );
      assert.deepEqual(bytes.report.usage, at.report.usage);
    });
  }

  for (const recording of recordings(family).filter(isError)) {
    test(`${family} ${recording.name} is a refusal with the right status`, async () => {
      const refusal = await relay(requestFor(recording), whole(recording)).then(
        () => assert.fail('it was taken for an answer'),
        (error: unknown) => error,
      );
      assert.ok(refusal instanceof UpstreamRefusal, String(refusal));
      if (!refusal.keyAtFault) assert.equal(refusal.status, recording.status === 200 ? 400 : recording.status);
      const isOurs = [401, 402, 403].includes(recording.status) || keyRefusedBy400.has(recording.name);
      assert.equal(refusal.keyAtFault, isOurs);
      assert.equal(refusal.error.kind === 'upstream_failed', isOurs);
      if (isOurs) assert.equal(refusal.answer, undefined, 'the body must not be handed on');
      else if (masked.has(recording.name))
        assert.notDeepEqual(await readBody(refusal.answer!.body), recording.response);
      else assert.deepEqual(await readBody(refusal.answer!.body), recording.response);
    });
  }
}

/** Two vendors refuse a wrong key with 400. */
const keyRefusedBy400 = new Set(['google-gemini-2.5-flash-err400-ccbf', 'xai-grok-4.3-err400-2c51']);

/** Error bodies that hold an address, an account or a project. All others leave byte for byte. */
const masked = new Set([
  'azure-openllmetry-testing-text-a84b',
  'openai-gpt-4o-mini-err400-520b',
  'openrouter-claude-haiku-4.5-err400-f58e',
  'openrouter-llama-3.2-3b-instruct-free-err429-33be',
  'google-gemini-2.5-flash-err429-9999',
  'vertex-err429-678f',
  'vertex-gemini-does-not-exist-err404-b456',
]);
