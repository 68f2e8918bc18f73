/** Recorded bodies, over the fake world: those of the newest requests are there. */

import { GatewayError } from '../../../../core/contract/errors.ts';
import type { RecordedBodies, Recording } from '../../../../plugins/common/domain/admin/recorded-bodies.ts';
import { dayMs, type World } from './world.ts';

const requestText = `{"model":"gpt-5.4-mini","messages":[{"role":"user","content":"<b>What</b> is in this picture?"},
 {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,[image/png: 160011 characters, sha256 6dcd4ce23d88e2ee]"}}]}],
 "metadata":{"password":"***"}}`;
const answerText = 'data: {"choices":[{"index":0,"delta":{"content":"A fox in a library."}}]}\n\n';

export function fakeBodies(world: World): RecordedBodies {
  const forgotten = new Set<string>();
  const recordings: Recording[] = [];
  return {
    isEnabled: true,
    async find(requestId) {
      const row = world.requests.slice(-20).find(({ id }) => id === requestId);
      if (row === undefined || forgotten.has(requestId)) return undefined;
      return {
        requestId,
        accountId: row.accountId,
        receivedAt: row.receivedAt,
        expiresAt: row.receivedAt + 3 * dayMs,
        request: { text: requestText, mediaType: 'application/json', bytes: 160_300, leftOut: 0 },
        answer: { text: answerText, mediaType: 'text/event-stream', bytes: 70_000, leftOut: 4_464 },
      };
    },
    async delete({ requestId, accountId }) {
      const gone = world.requests
        .slice(-20)
        .filter(({ id }) => !forgotten.has(id) && (requestId === undefined || id === requestId))
        .filter((row) => accountId === undefined || row.accountId === accountId);
      for (const { id } of gone) forgotten.add(id);
      return gone.length;
    },
    recordings: async () => recordings.toReversed(),
    async record(terms, by) {
      if (terms.accountId === undefined && terms.keyId === undefined && terms.model === undefined && !terms.errorsOnly)
        throw new GatewayError('invalid_request', 'Say whose bodies to keep.', { field: 'accountId' });
      const recording = { ...terms, id: world.nextId('recording'), startedAt: world.now(), by };
      recordings.push(recording);
      return recording;
    },
    async stopRecording(id) {
      const index = recordings.findIndex((one) => one.id === id);
      if (index < 0) throw new GatewayError('not_found', 'There is no such recording.', { field: 'id' });
      recordings.splice(index, 1);
    },
  };
}
