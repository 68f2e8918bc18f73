/** What clients sent and were told, where it is kept: shown to operators alone, with a row of who looked; recordings of it. */
import { createRoute, z } from '@hono/zod-openapi';
import type { KeptBody, Recording } from '../../../core/desk.ts';
import { accountDesk, bodyDesk } from '../desks.ts';
import { type Ask, actorOf, audited, type Console, need, nothingHere, router } from './router.ts';
import { answers, done, id, instant, iso, reasonAsked, takes } from './words.ts';

const body = z
  .object({
    text: z.string().describe('As it passed, without its secrets.'),
    mediaType: z.string().nullable(),
    bytes: z.number().describe('Length of the whole body.'),
    leftOut: z.number().describe('How many of them the text does not tell of.'),
  })
  .nullable()
  .openapi('KeptBody');
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

const one = createRoute({
  method: 'get',
  path: '/admin/requests/{id}/bodies',
  summary: 'What a client sent and was told, where it was kept; who looks is written down',
  request: { params: z.object({ id }) },
  responses: answers(
    z.object({
      kept: z
        .object({ receivedAt: instant, expiresAt: instant, request: body, answer: body })
        .nullable()
        .describe('null: no bodies were kept, or they have expired.'),
    }),
  ),
});
const forgetOne = createRoute({
  method: 'delete',
  path: '/admin/requests/{id}/bodies',
  summary: 'Delete the kept bodies of a request at once',
  request: { params: z.object({ id }), body: takes(z.strictObject({ reason: reasonAsked })) },
  responses: answers(z.object({ forgotten: z.number() })),
});
const forgetAccount = createRoute({
  method: 'delete',
  path: '/admin/accounts/{id}/bodies',
  summary: 'Delete all kept bodies of an account at once',
  request: { params: z.object({ id }), body: takes(z.strictObject({ reason: reasonAsked })) },
  responses: answers(z.object({ forgotten: z.number() })),
});
const list = createRoute({
  method: 'get',
  path: '/admin/recordings',
  summary: 'Recordings of bodies that run',
  responses: answers(
    z.object({ keeps: z.boolean().describe('Whether the configuration keeps bodies.'), rows: z.array(recording) }),
  ),
});
const begin = createRoute({
  method: 'post',
  path: '/admin/recordings',
  summary: 'Keep bodies for a limited time',
  request: {
    body: takes(
      z.strictObject({
        accountId: id.nullish(),
        keyId: id.nullish(),
        model: z.string().min(1).max(200).nullish(),
        errorsOnly: z.boolean().default(false),
        minutes: z.int().min(1).max(10_080).describe('How long.'),
        reason: reasonAsked,
      }),
    ),
  },
  responses: answers(recording),
});
const end = createRoute({
  method: 'delete',
  path: '/admin/recordings/{id}',
  summary: 'End a recording; what was kept stays until it expires',
  request: { params: z.object({ id }), body: takes(z.strictObject({ reason: reasonAsked })) },
  responses: answers(done),
});

export function bodyRoutes(hall: Console) {
  return router()
    .openapi(one, async (ask) => {
      const requestId = ask.req.valid('param').id;
      const look = { action: 'request.bodies', subject: requestId };
      const found = await audited(
        hall,
        ask,
        look,
        () => need(hall, bodyDesk).find(requestId),
        (bodies) => (bodies === undefined ? 'none' : 'shown'),
      );
      if (found === undefined) return ask.json({ kept: null }, 200);
      const { receivedAt, expiresAt, request, answer } = found;
      const times = { receivedAt: iso(receivedAt), expiresAt: iso(expiresAt) };
      return ask.json({ kept: { ...times, request: tellBody(request), answer: tellBody(answer) } }, 200);
    })
    .openapi(forgetOne, async (ask) => {
      const requestId = ask.req.valid('param').id;
      return ask.json({ forgotten: await forget(hall, ask, { requestId }, ask.req.valid('json').reason) }, 200);
    })
    .openapi(forgetAccount, async (ask) => {
      const accountId = ask.req.valid('param').id;
      return ask.json({ forgotten: await forget(hall, ask, { accountId }, ask.req.valid('json').reason) }, 200);
    });
}

export function recordingRoutes(hall: Console) {
  return router()
    .openapi(list, async (ask) => {
      const desk = need(hall, bodyDesk);
      return ask.json({ keeps: desk.keeps, rows: (await desk.recordings()).map(tellRecording) }, 200);
    })
    .openapi(begin, async (ask) => {
      const { accountId, keyId, model, errorsOnly, minutes, reason } = ask.req.valid('json');
      const accountFound = accountId ? await hall.find(accountDesk)?.find(accountId) : undefined;
      if (accountId && accountFound === undefined) throw nothingHere('account', 'accountId');
      const terms = {
        accountId: accountId ?? undefined,
        keyId: keyId ?? undefined,
        model: model ?? undefined,
        errorsOnly,
        until: hall.clock.now() + minutes * 60_000,
      };
      const subject = accountId ?? keyId ?? model ?? 'errors';
      const change = { action: 'recording.begin', subject, reason: `${minutes} minutes: ${reason}` };
      const begun = await audited(hall, ask, change, () => need(hall, bodyDesk).record(terms, actorOf(ask).label));
      return ask.json(tellRecording(begun), 200);
    })
    .openapi(end, async (ask) => {
      const subject = ask.req.valid('param').id;
      const { reason } = ask.req.valid('json');
      await audited(hall, ask, { action: 'recording.end', subject, reason }, () =>
        need(hall, bodyDesk).stopRecording(subject),
      );
      return ask.json({ ok: true } as const, 200);
    });
}

function forget(
  hall: Console,
  ask: Ask,
  of: { readonly requestId: string } | { readonly accountId: string },
  reason: string,
): Promise<number> {
  const subject = 'requestId' in of ? of.requestId : of.accountId;
  const change = { action: 'bodies.forget', subject, reason };
  return audited(hall, ask, change, () => need(hall, bodyDesk).forget(of));
}

function tellBody(kept: KeptBody | undefined) {
  return kept === undefined ? null : { ...kept, mediaType: kept.mediaType ?? null };
}

function tellRecording({ accountId, keyId, model, startedAt, until, ...rest }: Recording) {
  return {
    ...rest,
    accountId: accountId ?? null,
    keyId: keyId ?? null,
    model: model ?? null,
    startedAt: iso(startedAt),
    until: iso(until),
  };
}
