/** Every recording through a real gateway: what leaves is what the vendor sent, and it is metered as the vendor counted. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertMetered } from '../helpers/metered.ts';
import { families, type Recording, recordings } from '../helpers/recordings.ts';
import { behindTheEnd, errorsIn200, keyRefusedBy400, masked, refusedWithin, reshaped } from '../helpers/relay-rules.ts';
import { requestFor } from '../helpers/replay.ts';
import { type Script, seededCuts } from '../helpers/vendor.ts';
import { type Reply, type Stage, startStage } from './stage.ts';

let stage: Stage;
before(async () => {
  // Failing keys are not rested: each recording stands for itself.
  stage = await startStage({
    stream_usage: false,
    keys: Array.from({ length: 200 }, (_, index) => `vendor-key-${index}`),
  });
});
after(() => stage.stop());

function play(recording: Recording, script: Partial<Script> = {}): Promise<Reply> {
  const { path, body } = requestFor(recording);
  const headers = recording.contentType === undefined ? {} : { 'content-type': recording.contentType };
  return stage.send(path, body, { status: recording.status, headers, body: recording.response, ...script });
}

const isError = (recording: Recording) => recording.status >= 400 || errorsIn200.has(recording.name);

for (const family of families) {
  for (const recording of recordings(family).filter((one) => !isError(one) && !one.isStream)) {
    test(`${family} ${recording.name}`, async () => {
      const reply = await play(recording);
      assert.equal(reply.status, 200);
      assert.deepEqual(reply.body, recording.response);
      assert.equal(reply.observed.outcome.kind, 'complete');
      if (!recording.path.includes('countTokens')) assertMetered(recording, reply.observed.report!);
      assert.equal(stage.vendor.requests.at(-1)!.body.toString(), requestFor(recording).body);
    });
  }

  for (const recording of recordings(family).filter(
    (one) => !isError(one) && one.isStream && !refusedWithin.has(one.name),
  )) {
    const { name, response } = recording;
    test(`${family} ${name}, whole and cut at 50 places`, async () => {
      const whole = await play(recording);
      assert.equal(whole.status, 200);
      if (name in reshaped) assert.notDeepEqual(whole.body, response);
      else assertStream(recording, whole.body, response);
      assertMetered(recording, whole.observed.report!);
      assert.equal(whole.observed.outcome.kind, name.includes('midstream-err') ? 'failed' : 'complete');
      const cut = await play(recording, { cuts: seededCuts(response.length, 50, response.length) });
      assertStream(recording, cut.body, whole.body);
      assert.deepEqual(cut.observed.report, whole.observed.report);
    });
  }

  for (const recording of recordings(family).filter(({ name }) => refusedWithin.has(name)))
    test(`${family} ${recording.name} is refused before the head`, async () => {
      const reply = await play(recording);
      assert.equal(reply.status, refusedWithin.get(recording.name));
      assert.equal(reply.observed.report, undefined);
    });

  for (const recording of recordings(family).filter(isError)) {
    test(`${family} ${recording.name}`, async () => {
      const reply = await play(recording);
      const isOurs = [401, 402, 403].includes(recording.status) || keyRefusedBy400.has(recording.name);
      assert.ok(reply.body.length > 0 && JSON.parse(reply.body.toString()));
      assert.deepEqual(reply.observed.report, undefined);
      if (isOurs) assert.equal(reply.status, 502);
      else assert.equal(reply.status, recording.status === 200 ? 400 : recording.status);
      // A 429 of the upstream is reported in the gateway's words once every key and target has been tried.
      if (isOurs || reply.status === 429) return;
      if (masked.has(recording.name)) assert.notDeepEqual(reply.body, recording.response);
      else assert.deepEqual(reply.body, recording.response);
    });
  }
}

function assertStream(recording: Recording, actual: Buffer, expected: Buffer): void {
  const tail = behindTheEnd[recording.name];
  if (tail === undefined || actual.equals(expected)) assert.deepEqual(actual, expected);
  else assert.deepEqual(Buffer.concat([actual, Buffer.from(tail)]), expected);
}
