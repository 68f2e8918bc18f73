/** The desk of kept bodies: looking at them, deleting them, and asking for them for a limited time. */
import type { Clock, Random } from '../../../core/contract.ts';
import type { BodyDesk, RecordingTerms } from '../../../core/desk.ts';
import { GatewayError } from '../../../core/errors.ts';
import { isUuid } from '../desk-sql.ts';
import type { BodyStore } from './store.ts';

const longestMs = 7 * 86_400_000;
const mostRecordings = 50;
const longestText = 200;

export interface BodyDeskParts {
  readonly store: BodyStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Whether the configuration keeps bodies at all. */
  readonly keeps: () => boolean;
}

export function openBodyDesk({ store, clock, random, keeps }: BodyDeskParts): BodyDesk {
  return {
    get keeps() {
      return keeps();
    },
    find: (requestId) => store.find(requestId, clock.now()),
    forget: (of) => store.forget(of),
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
