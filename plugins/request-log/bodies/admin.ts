/** The service `recordedBodies`: reads and deletes bodies, and starts recordings for a limited time. */

import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import type { RecordedBodies, RecordingTerms } from '../../common/domain/admin/recorded-bodies.ts';
import { isUuid } from '../../common/domain/database.ts';
import type { BodyStore } from './store.ts';

const longestMs = 7 * 86_400_000;
const mostRecordings = 50;
const longestText = 200;

export interface RecordedBodiesOptions {
  readonly store: BodyStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Whether the configuration allows bodies to be recorded. */
  readonly keeps: () => boolean;
}

export function openRecordedBodies({ store, clock, random, keeps }: RecordedBodiesOptions): RecordedBodies {
  return {
    get isEnabled() {
      return keeps();
    },
    find: (requestId) => store.find(requestId, clock.now()),
    delete: (of) => store.forget(of),
    recordings: () => store.recordings(clock.now()),

    async record(terms, by) {
      if (!keeps()) throw refused('Bodies are not kept by this gateway: add `bodies: {}` to its request-log section.');
      const now = clock.now();
      check(terms, now);
      if ((await store.recordings(now)).length >= mostRecordings)
        throw refused(`At most ${mostRecordings} recordings run at once; stop one of them first.`);
      const recording = { ...terms, id: newId(random), startedAt: now, by: by.slice(0, longestText) };
      await store.record(recording);
      return recording;
    },

    async stopRecording(id) {
      if (!(await store.stopRecording(id)))
        throw new GatewayError('not_found', 'There is no such recording.', { field: 'id' });
    },
  };
}

function check({ accountId, keyId, model, errorsOnly, until }: RecordingTerms, now: number): void {
  if (!Number.isFinite(until) || until <= now || until > now + longestMs)
    throw refused('A recording ends within 7 days.', 'until');
  if (accountId === undefined && keyId === undefined && model === undefined && !errorsOnly)
    throw refused('Say whose bodies to keep: an account, a key, a model, or those of errors.', 'accountId');
  for (const [field, id] of Object.entries({ accountId, keyId }))
    if (id !== undefined && !isUuid(id)) throw refused('This is not an id.', field);
  if (model !== undefined && (model === '' || model.length > longestText || model.includes('\0')))
    throw refused('This is not the name of a model.', 'model');
}

const refused = (message: string, field?: string) =>
  new GatewayError('invalid_request', message, field === undefined ? {} : { field });

/** A UUID of version 4. */
function newId(random: Random): string {
  const bytes = random.bytes(16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
