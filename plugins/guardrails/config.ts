/** The section of a gateway file: checks, policies of them, and to which calls policies apply. */
import { count, duration, z } from '../../core/contract/schema.ts';

const name = z.string().regex(/^[a-z][a-z0-9_-]{0,39}$/, 'must be a short name of small letters, digits, - and _');

/** `prompt` and `answer` stand for all of a request and all of an answer; the others for a part of it. */
const places = ['prompt', 'messages', 'tool_result', 'answer', 'text', 'tool_arguments', 'thinking'] as const;
export type Place = (typeof places)[number];

const commonMembers = {
  on: z
    .array(z.enum(places))
    .min(1)
    .default(['prompt', 'answer'])
    .describe(
      'What is checked: `prompt` (all texts of a request), of it `messages` or `tool_result` alone; `answer` (all of an answer), of it `text`, `tool_arguments` or `thinking` alone. Narrow it when a check is slow or finds too much.',
    ),
  do: z
    .enum(['refuse', 'mask', 'log'])
    .default('refuse')
    .describe(
      'What becomes of a finding: the call is refused, the found text is replaced by a placeholder, or it is noted alone. Begin with log to see what a check finds.',
    ),
  as: z
    .enum(['error', 'answer'])
    .default('error')
    .describe(
      'How a refusal is sent: as an error of the client’s protocol, or as an answer with `message` as its text. Use answer for clients that show errors badly.',
    ),
  message: z
    .string()
    .min(1)
    .max(2_000)
    .default('This content is not allowed by the rules of this gateway.')
    .describe('What the client reads when the check refuses. Change it to say where to ask.'),
  within: duration()
    .refine((value) => value >= 10 && value <= 60_000, 'must be from 10ms to 60s')
    .prefault('2s')
    .describe('How long a verdict may take; then the check is broken. Raise it for a slow service.'),
  broken: z
    .enum(['refuse', 'allow', 'log'])
    .default('refuse')
    .describe(
      'What becomes of a call where the check is broken: refused with 503, made without it, or made with a line in the log. Use allow or log when answering matters more than the check.',
    ),
  beside: z
    .boolean()
    .default(false)
    .describe(
      'The call is made while the check of its prompt runs, and its answer waits for the verdict. Use it for slow checks that rarely refuse; the vendor has the prompt by then.',
    ),
  restore: z
    .boolean()
    .default(false)
    .describe(
      'With `do: mask`: placeholders of the prompt that come back in the answer are replaced by what they stand for. Use it to keep data from vendors and let answers name them.',
    ),
};

const common = z.object(commonMembers);
export type CommonSettings = z.output<typeof common>;
/** Members of a check’s section that every type has. */
const commonNames: ReadonlySet<string> = new Set(['type', ...Object.keys(commonMembers)]);

const check = z.looseObject({
  type: z
    .string()
    .describe(
      'What the check is: patterns, words, limits, json_schema, moderation, decisions, litellm, presidio, lakera, openai_moderations, azure_content_safety, bedrock_guardrail, model_armor, prisma_airs, or a type of a plugin. Local types cost no time; the others ask a model or a service.',
    ),
  ...commonMembers,
});
export type CheckSettings = z.output<typeof check>;

const who = (what: string) => z.array(z.string().min(1)).optional().describe(what);

const application = z.strictObject({
  policy: name.describe('Name of the policy that applies. Add an entry for each group of callers that needs one.'),
  plans: who('Plans of the caller. Absent: all.'),
  projects: who('Projects of the key. Absent: all.'),
  accounts: who('Ids of accounts. Absent: all.'),
  keys: who('Ids of keys. Absent: all.'),
  models: who('Models as clients name them, with * for any letters. Absent: all.'),
  tags: z.record(z.string(), z.string()).optional().describe('Tags that the call has, by name. Absent: any.'),
});
export type Application = z.output<typeof application>;

const policy = z
  .union([
    z.array(name).transform((checks) => ({ checks, uncovered: 'refuse' as const, charge: 'nothing' as const })),
    z.strictObject({
      checks: z
        .array(name)
        .describe(
          'Names of its checks, in the order in which they run. Put those that mask before those that ask a service.',
        ),
      uncovered: z
        .enum(['refuse', 'allow'])
        .default('refuse')
        .describe(
          'What becomes of answers that cannot give their texts to its checks, such as sound of sessions without a transcript: refused with guardrail_not_applicable, or sent unchecked. Use allow where such sessions must go on.',
        ),
      charge: z
        .enum(['attempt', 'nothing'])
        .default('nothing')
        .describe(
          'What a call costs that a check of this policy refuses with `beside`: what the vendor has done, or nothing. Use attempt where refused calls would be misused.',
        ),
    }),
  ])
  .describe('Checks in the order in which they run.');

export const config = z.strictObject({
  checks: z.record(name, check).default({}).describe('Checks by name. Policies name them.'),
  policies: z
    .record(name, policy)
    .default({})
    .describe('Lists of checks by name. Nothing applies until `apply` names one.'),
  apply: z
    .array(application)
    .default([])
    .describe(
      'Which policies apply to which calls; all that match are added up. An entry with no members but `policy` applies to every call.',
    ),
  stream: z
    .union([
      z.enum(['whole', 'end']),
      z.strictObject({
        release: count()
          .prefault(400)
          .describe(
            'Characters of a streamed answer that are checked and sent together. Lower it for a faster first word.',
          ),
        overlap: count()
          .prefault(64)
          .describe(
            'Characters that are kept back, so that a finding across two pieces is found. Raise it to the longest text that your checks find.',
          ),
      }),
    ])
    .prefault({})
    .describe(
      'How streamed answers are checked: in pieces, each text `whole` before any of it is sent, or at the `end`, when all was sent and a finding is noted alone.',
    ),
  keep: duration()
    .prefault('30d')
    .describe('How long verdicts are kept in the database. Raise it when you review longer times.'),
});
export type GuardrailsConfig = z.output<typeof config>;

/** The members that the type of a check has beside the common ones. */
export function ownMembers(settings: CheckSettings): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).filter(([member]) => !commonNames.has(member)));
}
