/** The types of checks that ask a model of this gateway: moderation and decisions. */

import { z } from '../../../core/contract/schema.ts';
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import type { GuardrailCheckType, Payer, TextsToJudge } from '../../common/guardrails/checks.ts';
import { asType } from '../services/service.ts';

const share = () => z.number().min(0).max(1);

const paidBy = () =>
  z
    .enum(['account', 'operator'])
    .default('account')
    .describe(
      'Who pays for the calls of the model: the account of the checked call, or the operator, so that clients pay for their own calls alone.',
    );

const moderationConfig = z.strictObject({
  model: z
    .string()
    .min(1)
    .describe('A model of the catalogue that moderates texts. Calls of it belong to the account of the call.'),
  categories: z
    .record(z.string().min(1), share())
    .optional()
    .describe('Scores by category from which on a text is a finding. Absent: what the model flags.'),
  paid_by: paidBy(),
});

const moderation: GuardrailCheckType<z.output<typeof moderationConfig>> = {
  name: 'moderation',
  config: moderationConfig,
  isOutside: true,
  open: ({ model, categories, paid_by: payer }) => ({
    async judge(given) {
      const input = given.texts.map(({ text }) => text);
      const answer = await asked(given, '/v1/moderations', { model, input }, payer);
      const results = listOf(answer['results']).filter(isObject);
      if (results.length === 0) throw new Error('the answer has no results');
      return { isHit: results.some((result) => isFlagged(result, categories)) };
    },
  }),
};

function isFlagged(result: JsonObject, categories: Readonly<Record<string, number>> | undefined): boolean {
  if (categories === undefined) {
    if (typeof result['flagged'] !== 'boolean') throw new Error('the answer does not say what is flagged');
    return result['flagged'];
  }
  const scores = result['category_scores'];
  if (!isObject(scores)) throw new Error('the answer has no scores');
  return Object.entries(categories).some(([name, least]) => Number(scores[name] ?? 0) >= least);
}

const decisionsConfig = z.strictObject({
  model: z
    .string()
    .min(1)
    .describe('A model of the catalogue that decides. Calls of it belong to the account of the call.'),
  ask: z
    .record(z.string().min(1).max(40), z.string().min(1).max(2_000))
    .refine((questions) => Object.keys(questions).length > 0, 'needs a question')
    .describe('Questions by name, each answered by yes or no. A yes is a finding.'),
  at: share()
    .default(0.5)
    .describe('Probability of yes from which on it is a finding. Raise it when too much is found.'),
  paid_by: paidBy(),
});

const decisions: GuardrailCheckType<z.output<typeof decisionsConfig>> = {
  name: 'decisions',
  config: decisionsConfig,
  isOutside: true,
  open: ({ model, ask, at, paid_by: payer }) => ({
    async judge(given) {
      const questions = Object.entries(ask).map(([name, instructions]) => ({ type: 'predicate', name, instructions }));
      const input = given.texts.map(({ text }) => text).join('\n\n');
      const answer = await asked(given, '/v1/decisions', { model, input, questions }, payer);
      const answers = listOf(answer['answers']).filter(isObject);
      if (answers.length !== questions.length) throw new Error('the answer does not answer each question');
      return {
        isHit: answers.some(({ probability }) => {
          if (typeof probability !== 'number') throw new Error('the answer has no probability');
          return probability >= at;
        }),
      };
    },
  }),
};

function asked({ ask }: TextsToJudge, path: string, body: JsonObject, payer: Payer): Promise<JsonObject> {
  if (ask === undefined) throw new Error('the call has no account by which a model can be asked');
  return ask(path, body, payer);
}

const schemaConfig = z.strictObject({
  schema: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'JSON Schema that each text of an answer must follow. Absent: the one that the request asks for, if it does.',
    ),
});

const jsonSchema: GuardrailCheckType<z.output<typeof schemaConfig>> = {
  name: 'json_schema',
  config: schemaConfig,
  open({ schema }) {
    const own = schema === undefined ? undefined : readerOf(schema);
    const readers = new WeakMap<object, z.ZodType>();
    return {
      wantsWhole: true,
      textOnly: true,
      judge({ stage, texts, schema: requested }) {
        if (stage !== 'answer' || (own === undefined && requested === undefined)) return { isHit: false };
        let reader = own ?? readers.get(requested!);
        if (reader === undefined) {
          reader = readerOf(requested!);
          readers.set(requested!, reader);
        }
        const follows = reader;
        return { isHit: texts.some(({ text }) => !isLike(follows, text)) };
      },
    };
  },
};

function readerOf(schema: JsonObject): z.ZodType {
  return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
}

function isLike(reader: z.ZodType, text: string): boolean {
  try {
    return reader.safeParse(JSON.parse(text)).success;
  } catch {
    return false;
  }
}

export const askingChecks: readonly GuardrailCheckType[] = [asType(moderation), asType(decisions), asType(jsonSchema)];
