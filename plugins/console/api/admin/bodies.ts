/** Recorded bodies of requests and answers, for operators only; each look leaves an audit row. Starting and ending recordings. */

import { z } from '@hono/zod-openapi';
import { accountAdmin, recordedBodies } from '../../services.ts';
import { actorOf, type ConsoleServices, need, nothingHere } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, id, instant, reasonInput, takes, writerOf } from '../schemas.ts';

export const keptBody = z
  .object({
    text: z.string().describe('As it passed, without its secrets.'),
    mediaType: z.string().nullable(),
    bytes: z.number().describe('Length of the whole body.'),
    leftOut: z.number().describe('How many of them the text leaves out.'),
  })
  .nullable()
  .openapi('KeptBody');
const kept = z.object({ receivedAt: instant, expiresAt: instant, request: keptBody, answer: keptBody }).nullable();
const keptJson = writerOf(kept);
const recording = z
  .object({
    id: z.string(),
    accountId: z.string().nullable(),
    keyId: z.string().nullable(),
    model: z.string().nullable(),
    errorsOnly: z.boolean(),
    startedAt: instant,
    until: instant,
    by: z.string(),
  })
  .openapi('Recording');

const one = route(
  'get',
  '/admin/requests/{id}/bodies',
  'The recorded bodies of a request and its answer; reading them is audited',
  answers(
    z.object({
      kept: kept.describe('null: no bodies were kept, or they have expired.'),
    }),
  ),
  { params: z.object({ id }) },
);
const forgetOne = route(
  'delete',
  '/admin/requests/{id}/bodies',
  'Delete the kept bodies of a request at once',
  answers(z.object({ forgotten: z.number() })),
  { params: z.object({ id }), body: takes(z.strictObject({ reason: reasonInput })) },
);
const forgetAccount = route(
  'delete',
  '/admin/accounts/{id}/bodies',
  'Delete all kept bodies of an account at once',
  answers(z.object({ forgotten: z.number() })),
  { params: z.object({ id }), body: takes(z.strictObject({ reason: reasonInput })) },
);
const list = route(
  'get',
  '/admin/recordings',
  'Recordings of bodies that run',
  answers(
    z.object({ keeps: z.boolean().describe('Whether the configuration keeps bodies.'), rows: z.array(recording) }),
  ),
);
const begin = route('post', '/admin/recordings', 'Keep bodies for a limited time', answers(recording), {
  body: takes(
    z.strictObject({
      accountId: id.nullish(),
      keyId: id.nullish(),
      model: z.string().min(1).max(200).nullish(),
      errorsOnly: z.boolean().default(false),
      minutes: z.int().min(1).max(10_080).describe('How long.'),
      reason: reasonInput,
    }),
  ),
});
const end = route(
  'delete',
  '/admin/recordings/{id}',
  'End a recording; kept bodies stay until they expire',
  answers(done),
  { params: z.object({ id }), body: takes(z.strictObject({ reason: reasonInput })) },
);

export function bodyRoutes(services: ConsoleServices) {
  return new Routes(services)
    .action(one, ({ param: { id } }) => ({
      action: 'request.bodies',
      subject: id,
      run: async () => ({ kept: keptJson(await need(services, recordedBodies).find(id)) }),
      outcome: ({ kept }) => (kept === null ? 'none' : 'shown'),
    }))
    .action(forgetOne, ({ param: { id }, json }) => forget(services, id, { requestId: id }, json.reason))
    .action(forgetAccount, ({ param: { id }, json }) => forget(services, id, { accountId: id }, json.reason));
}

export function recordingRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(list, async () => {
      const bodies = need(services, recordedBodies);
      return { keeps: bodies.isEnabled, rows: (await bodies.recordings()).map(recordingJson) };
    })
    .action(begin, async ({ json, c }) => {
      const { accountId, keyId, model, errorsOnly, minutes, reason } = json;
      const account = accountId ? await services.find(accountAdmin)?.find(accountId) : undefined;
      if (accountId && account === undefined) throw nothingHere('account', 'accountId');
      const terms = {
        accountId: accountId ?? undefined,
        keyId: keyId ?? undefined,
        model: model ?? undefined,
        errorsOnly,
        until: services.clock.now() + minutes * 60_000,
      };
      return {
        action: 'recording.begin',
        subject: accountId ?? keyId ?? model ?? 'errors',
        reason: `${minutes} minutes: ${reason}`,
        run: async () => recordingJson(await need(services, recordedBodies).record(terms, actorOf(c).label)),
      };
    })
    .action(end, ({ param: { id: subject }, json: { reason } }) => ({
      action: 'recording.end',
      subject,
      reason,
      run: () => need(services, recordedBodies).stopRecording(subject),
    }));
}

function forget(
  services: ConsoleServices,
  subject: string,
  of: { readonly requestId: string } | { readonly accountId: string },
  reason: string,
) {
  const run = async () => ({ forgotten: await need(services, recordedBodies).delete(of) });
  return { action: 'bodies.forget', subject, reason, run };
}

const recordingJson = writerOf(recording);
