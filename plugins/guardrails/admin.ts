/** The operators' page of guardrails: what checks have said, and what a policy finds in a text that is pasted. */
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { z } from '../../core/contract/schema.ts';
import { type AdminPage, adminRoute } from '../common/domain/admin/admin-pages.ts';
import { tryText } from './commands.ts';
import type { CallTools } from './guarded-call.ts';
import type { Policies } from './policies.ts';
import type { VerdictRows } from './rows.ts';

export interface PageTools {
  /** undefined: this gateway keeps no rows. */
  readonly rows: VerdictRows | undefined;
  readonly clock: Host['clock'];
  readonly tools: CallTools;
  policies(): Promise<Policies>;
}

const dayMs = 24 * 3_600_000;

const rate = z.object({
  check: z.string(),
  stage: z.string(),
  calls: z.number(),
  verdicts: z.record(z.string(), z.number()),
  milliseconds: z.number(),
  mistaken: z.number(),
});

const place = z.object({
  account: z.string(),
  request: z.string(),
  check: z.string(),
  stage: z.string(),
});
const finding = z.object({
  ...place.shape,
  verdict: z.string(),
  findings: z.number(),
  digest: z.string(),
  mark: z.string(),
  at: z.number(),
});

/** Findings that the page shows. */
const mostShown = 100;

const tried = z.object({
  checks: z.array(z.object({ check: z.string(), verdict: z.string(), findings: z.number(), milliseconds: z.number() })),
  text: z.string().optional(),
});

export function guardrailPage({ rows, clock, tools, policies }: PageTools): AdminPage {
  return {
    name: 'guardrails',
    title: { en: 'Guardrails', de: 'Guardrails', ja: 'ガードレール', zh: '护栏' },
    intro: {
      en: 'What checks have found in calls, and what a policy finds in a text.',
      de: 'Was Prüfungen in Aufrufen gefunden haben, und was eine Richtlinie in einem Text findet.',
      ja: 'チェックが呼び出しで見つけたものと、ポリシーがテキストで見つけるもの。',
      zh: '检查在调用中发现的内容，以及某条策略在一段文本中发现的内容。',
    },
    group: 'traffic',
    access: 'read',
    module: new URL('./page.js', import.meta.url),
    routes: [
      adminRoute({
        method: 'GET',
        path: '',
        summary: 'What checks have said, by check and stage',
        access: 'read',
        query: z.object({ days: z.coerce.number().int().min(1).max(365).default(7) }),
        answer: z.object({ policies: z.array(z.string()), checks: z.array(rate), findings: z.array(finding) }),
        handle: async ({ query }) => ({
          policies: (await policies()).names,
          checks: (await rows?.rates(clock.now() - query.days * dayMs)) ?? [],
          findings: (await rows?.findings(clock.now() - query.days * dayMs, mostShown)) ?? [],
        }),
      }),
      markRoute(rows),
      adminRoute({
        method: 'POST',
        path: '/try',
        summary: 'What the checks of a policy find in a text, without a call',
        access: 'act',
        body: z.strictObject({
          policy: z.string().min(1),
          text: z.string().min(1).max(100_000),
          stage: z.enum(['prompt', 'answer']).default('prompt'),
        }),
        answer: tried,
        subject: ({ body }) => body.policy,
        async handle({ body }) {
          const checks = (await policies()).named(body.policy);
          if (checks === undefined)
            throw new GatewayError('invalid_request', `There is no policy "${body.policy}".`, { field: 'policy' });
          return tryText(checks, body.text, body.stage, tools);
        },
      }),
    ],
  };
}

function markRoute(rows: VerdictRows | undefined) {
  return adminRoute({
    method: 'POST',
    path: '/marks',
    summary: 'Says that a finding is mistaken, with all of the same text, or takes that back',
    access: 'act',
    body: z.strictObject({ ...place.shape, mistaken: z.boolean() }),
    answer: z.object({ marked: z.number() }),
    subject: ({ body }) => `${body.check} ${body.request}`,
    async handle({ body: { mistaken, ...of } }) {
      const marked = (await rows?.mark(of, mistaken ? 'false' : '')) ?? 0;
      if (marked === 0) throw new GatewayError('not_found', 'There is no such finding.');
      return { marked };
    },
  });
}
