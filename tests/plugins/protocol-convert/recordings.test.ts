import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../../core/contract/message.ts';
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import type { UsageReport } from '../../../plugins/common/domain/calls.ts';
import { assertMetered } from '../../helpers/metered.ts';
import { families, type Recording, recordings } from '../../helpers/recordings.ts';
import {
  behindTheEnd,
  errorsIn200,
  keyRefusedBy400,
  masked,
  refusedWithin,
  reshaped,
} from '../../helpers/relay-rules.ts';
import { requestFor } from '../../helpers/replay.ts';
import { seededCuts } from '../../helpers/vendor.ts';
import { cutAt, readBody, relay, streamAnswer, wholeAnswer } from './harness.ts';

async function play(recording: Recording, upstream: Answer): Promise<{ body: Buffer; report: UsageReport }> {
  const { answer, report } = await relay(requestFor(recording), upstream);
  assert.equal(answer.status, 200);
  return { body: await readBody(answer.body), report: report! };
}

const whole = (recording: Recording) => wholeAnswer(recording.response, recording.status, recording.headers);
const isError = (recording: Recording) => recording.status >= 400 || errorsIn200.has(recording.name);

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

  for (const recording of answered.filter((one) => one.isStream && !refusedWithin.has(one.name))) {
    const { name, response } = recording;
    test(`${family} ${name} is streamed byte for byte and metered, whole and cut at 50 places`, async () => {
      const at = await play(recording, streamAnswer([response]));
      assertMetered(recording, at.report);
      assert.equal(at.report.terminal, !name.includes('midstream-err'));
      if (name in reshaped) assert.notDeepEqual(at.body, response);
      else assert.deepEqual(at.body, response);
      for (let seed = 1; seed <= 5; seed++) {
        const cut = await play(recording, streamAnswer(cutAt(response, seededCuts(response.length, 50, seed))));
        const tail = behindTheEnd[name] ?? '';
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

  for (const recording of answered.filter(({ name }) => refusedWithin.has(name)))
    test(`${family} ${recording.name} is a refusal before the head`, async () => {
      const { response } = recording;
      for (const chunks of [[response], cutAt(response, seededCuts(response.length, 50, 1))])
        await assert.rejects(play(recording, streamAnswer(chunks)), { status: refusedWithin.get(recording.name) });
    });

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
