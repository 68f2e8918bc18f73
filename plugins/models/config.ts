/** Settings of models: owner, targets, sizes and price. */

import { count, durationOrOff, z } from '../../core/contract/schema.ts';
import { headersSchema } from '../common/domain/headers-schema.ts';
import { type ModelKind, modelKinds } from '../common/domain/models.ts';
import { ratio } from '../common/domain/money-schema.ts';
import type { PriceBook } from '../common/domain/prices.ts';
import { limitsSchema, traitsSchema } from '../common/domain/traits.ts';
import type { UsageClass } from '../common/domain/usage.ts';
import { lacks, priceSchema } from './price-config.ts';

/** Any printable text without spaces, `?` or `#`, so that it fits a path: `vendor/model:tag` is fine. */
const modelId = z.string().regex(/^[^\s?#/\p{C}][^\s?#\p{C}]{0,199}$/u, 'is not a model id');

const providerName = z.string().regex(/^[a-z][a-z0-9._-]{0,62}$/i, 'is not a provider name');

const protocolName = z.string().regex(/^[a-z][a-z0-9._-]{0,62}$/i, 'is not a protocol name');

const plainTarget = {
  weight: 0,
  speaks: undefined,
  headers: undefined,
  traits: undefined,
  cost: undefined,
  below_cost: false,
  context: undefined,
};

const shortTarget = z.string().transform((text, context) => {
  const slash = text.indexOf('/');
  const provider = slash === -1 ? text : text.slice(0, slash);
  const model = slash === -1 ? undefined : text.slice(slash + 1);
  if (providerName.safeParse(provider).success && model !== '') return { provider, model, ...plainTarget };
  context.addIssue({ code: 'custom', message: 'must be a provider, or provider/upstream-model' });
  return z.NEVER;
});

const longTarget = z.strictObject({
  provider: providerName.describe('Name of the provider. Write a name of the section `providers`.'),
  model: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The provider's name of the model. Set it where it differs from the id here. Default: the id it has here.",
    ),
  weight: z
    .number()
    .min(0)
    .max(1_000_000)
    .default(0)
    .describe(
      'Share of the first tries; 0: none, tried in the listed order after the others. Set it to divide traffic between targets.',
    ),
  speaks: z
    .union([protocolName, z.array(protocolName).min(1).max(20)])
    .transform((written) => [written].flat())
    .optional()
    .describe(
      "The protocols of the provider that this model takes there, one or a list, the preferred one first. Set it where a provider speaks more than this model does. Default: all of the provider's.",
    ),
  headers: headersSchema
    .optional()
    .describe(
      "Headers that are sent with this model's requests to this provider, over the provider's own. Set them for beta features of one model.",
    ),
  traits: traitsSchema
    .optional()
    .describe('Traits of the model at this provider. Set it where the same model behaves differently there.'),
  context: count()
    .optional()
    .describe(
      "Largest input that it takes there, in tokens. Set it where a provider serves a shorter context. Default: the model's.",
    ),
  cost: priceSchema
    .optional()
    .describe(
      "What the operator pays this provider, written like a price. Set it to see margins, and to be warned of sales below cost. Default: the model's.",
    ),
  below_cost: z
    .boolean()
    .default(false)
    .describe('true: the model may be sold below its cost here. Turn it on for a target that is dearer on purpose.'),
});

const created = z.union([z.number(), z.string()]).transform((value, context) => {
  const seconds = typeof value === 'number' ? value : Date.parse(value) / 1000;
  if (Number.isSafeInteger(seconds) && seconds >= 0) return seconds;
  context.addIssue({ code: 'custom', message: 'must be Unix seconds or a date such as 2026-04-23' });
  return z.NEVER;
});

const otherModels = z
  .union([modelId, z.array(modelId).min(1).max(5)])
  .transform((written) => [written].flat())
  .optional();

const insteadSchema = z.strictObject({
  context_length: otherModels.describe(
    'Models, one or a list, that are asked where the prompt is too long for this one. Name one with a longer context.',
  ),
  unavailable: otherModels.describe(
    'Models that are asked where no target of this one can answer at the moment. Name one of another vendor.',
  ),
  content_filter: otherModels.describe(
    "Models that are asked where the vendor's content rules refuse the call. Name one only if your own rules allow it.",
  ),
});

const settings = z.strictObject({
  owned_by: z
    .string()
    .min(1)
    .max(100)
    .describe("Group that owns the model, as clients see it. Write the maker's name."),
  targets: z
    .array(z.union([shortTarget, longTarget]))
    .min(1)
    .max(100)
    .describe(
      'Where the model is served: provider, provider/upstream-model or { provider, model, weight, speaks }, tried in this order. Add a second one so that calls go on when the first fails.',
    ),
  context: count().optional().describe('Largest input, in tokens. Write what the vendor documents.'),
  max_output: count().optional().describe('Largest output, in tokens. Write what the vendor documents.'),
  limits: limitsSchema
    .optional()
    .describe(
      'What the vendor documents of a model beside its tokens, for people: prompt, images, references, seconds, voices …. Set it for models of images, videos and sound.',
    ),
  kind: z
    .enum(modelKinds)
    .default('chat')
    .describe('What it makes or does: chat, image, video, embedding …. Set it for every model that does not chat.'),
  display_name: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Name for people. Set it where the id reads badly. Default: the id.'),
  created: created
    .prefault(0)
    .describe('When it came out: Unix seconds or an ISO date. Set it so that lists are in order of age.'),
  price: priceSchema
    .optional()
    .describe(
      "'free', USD by class with its tiers, or a list of such versions; without a price the model is not sold. Set it for every model that you sell.",
    ),
  price_source: z
    .string()
    .min(1)
    .optional()
    .describe("Where the price was read: a URL, or 'example'. Write it so that the next person can check the price."),
  list_price: priceSchema
    .optional()
    .describe(
      'What its maker asks publicly, written like a price: the own cost of calls that the maker answers where no `cost` is written; sales below it are not refused. Set it to see margins of a model of your own.',
    ),
  cost: priceSchema
    .optional()
    .describe('What the operator pays, written like a price; sales below it are refused. Set it to see margins.'),
  below_cost: z
    .boolean()
    .default(false)
    .describe('true: the model may be sold below its cost. Turn it on for a model that you subsidise.'),
  multiplier: ratio()
    .optional()
    .describe(
      "Ratio on the model's price, on top of the plan's and the account's. Set it when one model has another margin. Default: 1.",
    ),
  batch: ratio()
    .optional()
    .describe(
      "Ratio on the price of lines of batches, on top of the others. Set it to pass on the vendor's lower price. Default: 1.",
    ),
  traits: traitsSchema
    .optional()
    .describe(
      'How the model wants to be asked when a request is translated for it. Set it when the vendor refuses translated requests.',
    ),
  strategy: z
    .enum(['ordered', 'fastest'])
    .optional()
    .describe(
      'Which target is tried first: ordered (as listed, by weight) or fastest. Set it for a model whose targets differ in speed. Default: the setting of `route`.',
    ),
  hedge: durationOrOff()
    .optional()
    .describe(
      'How long a target may be silent before another is asked beside it, or off. Set it for models whose first word must come soon. Default: as `route` says.',
    ),
  instead: insteadSchema
    .optional()
    .describe(
      'Other models of the same kind that serve a call when this one cannot, at their own price; the header x-gateway-model names the one that served. Set it when any answer is better than an error. Default: none.',
    ),
  aliases: z
    .array(modelId)
    .max(100)
    .prefault([])
    .describe('Other ids that mean this model; they are not listed. Add the names that client programs ask for.'),
});

const modelSchema = settings.superRefine((model, context) => {
  const { price } = model;
  if (price === undefined) return;
  const missing = missingClasses(price, model.kind);
  if (missing === undefined) return;
  const message = `the price of a model of the kind "${model.kind}" must name ${missing.join(' or ')}; write 0 where nothing is owed`;
  context.addIssue({ code: 'custom', path: ['price'], message });
});

/** The classes of which a price of this kind must name one, if it names none. */
export function missingClasses(price: PriceBook, kind: ModelKind): readonly UsageClass[] | undefined {
  return requiredClasses[kind].find((names) => lacks(price, names));
}

/** An unnamed class costs nothing, so those that a kind always uses must be named: one of each group. */
const requiredClasses: Record<ModelKind, readonly (readonly UsageClass[])[]> = {
  chat: [['input'], ['output']],
  image: [['image', 'output_image', 'output', 'request', 'call']],
  video: [['second', 'output', 'request', 'call']],
  embedding: [['input', 'request']],
  rerank: [['search', 'input', 'request']],
  decision: [['input', 'request']],
  speech: [['character', 'output', 'output_audio', 'request']],
  transcription: [['audio', 'input_audio', 'input', 'request']],
  moderation: [['input', 'request']],
  realtime: [
    ['input', 'input_audio'],
    ['output', 'output_audio'],
  ],
};

export const modelsSchema = z
  .record(modelId, modelSchema)
  .superRefine((models, context) => {
    const taken = new Set(Object.keys(models));
    for (const [id, model] of Object.entries(models)) {
      for (const alias of model.aliases) {
        if (taken.has(alias)) {
          context.addIssue({
            code: 'custom',
            path: [id, 'aliases'],
            message: `"${alias}" is a model or an alias already`,
          });
        }
        taken.add(alias);
      }
    }
  })
  .describe('Models by id: owner, targets, sizes and price.');

export type ModelConfig = z.output<typeof modelSchema>;
export type ModelsConfig = z.output<typeof modelsSchema>;
