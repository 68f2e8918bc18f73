/** Settings of the plugin: the search engine, its API and what a search costs. */
import { duration, secretText, size, z } from '../../core/contract/schema.ts';
import { headersSchema } from '../common/domain/headers-schema.ts';
import { usd } from '../common/domain/money-schema.ts';
import { engines, unknownEngine, withEngine } from './engines.ts';

const path = z.string().regex(/^[\w-]+(?:\.[\w-]+)*$/, 'must be names of members with dots between them');

const apiSchema = z.strictObject({
  url: z
    .string()
    .regex(/^(?:https?:\/\/|[a-z][a-z0-9-]*:\/)\S+$/, 'must be an http(s) address')
    .optional()
    .describe('Address that is asked; "sandbox:/search" is that of the sandbox. Set it for a server of your own.'),
  headers: headersSchema
    .default({})
    .describe('Headers of each request; "{key}" stands for the key. Set them as the engine documents them.'),
  query: z
    .record(z.string().min(1).max(64), z.string().max(512))
    .default({})
    .describe(
      'Parameters of the address. {query}, {count}, {country} and {country_lower} (two letters), {place}, {allowed} and {blocked} (domains) and {key} stand for values; a parameter without a value is left out. Set them as the engine documents them.',
    ),
  body: z
    .record(z.string().min(1).max(64), z.unknown())
    .optional()
    .describe(
      'JSON of the request, which is a POST then, with the same words as `query`. Set it for engines that take one.',
    ),
  most: z
    .int()
    .min(1)
    .max(100)
    .default(20)
    .describe('Most results that the engine gives at once. Set it to what it documents.'),
  operators: z
    .boolean()
    .default(false)
    .describe(
      'Domains are asked for by "site:" in the query. Set it where the engine knows this word and has no list of domains.',
    ),
  results: path.default('results').describe('Where the list of results stands in the answer. Set it as documented.'),
  title: path.default('title').describe("Where a result's title stands. Set it where it has another name."),
  address: path.default('url').describe("Where a result's address stands. Set it where it has another name."),
  text: z
    .array(path)
    .min(1)
    .max(8)
    .default(['content'])
    .describe(
      "Where a result's text stands; several are read one after the other. Set them to all that a model can use.",
    ),
  date: path.optional().describe("Where a result's date stands. Set it where the engine gives one."),
});

export const searchSchema = z.preprocess(
  withEngine,
  z
    .strictObject({
      engine: z
        .string()
        .min(1)
        .max(64)
        .superRefine((name, context) => {
          if (!engines().has(name)) context.addIssue({ code: 'custom', message: unknownEngine(name) });
        })
        .optional()
        .describe('Name of a search engine in config/search-engines.yaml, whose API is known. Set it, and `key`.'),
      key: secretText()
        .max(4_096)
        .default('')
        .describe('Key of the engine. It is sent to the engine alone. Set it from a variable.'),
      price: usd()
        .prefault(0)
        .describe(
          'USD of one search, before the ratios of plan and account. Set it to what the engine costs, or more.',
        ),
      results: z
        .int()
        .min(1)
        .max(50)
        .default(6)
        .describe('Results of a search that asks for no number. Raise it for models with long prompts.'),
      text: z
        .int()
        .min(100)
        .max(20_000)
        .default(1_500)
        .describe('Most characters of the text of one result. Raise it for engines that return whole pages.'),
      within: duration()
        .refine((ms) => ms >= 100 && ms <= 60_000, 'must be from 100ms to 1m')
        .prefault('10s')
        .describe('Longest time of one search. Raise it for a slow engine.'),
      answer: size()
        .refine((bytes) => bytes >= 1_024 && bytes <= 16 * 2 ** 20, 'must be from 1KB to 16MB')
        .prefault('1MB')
        .describe('Largest answer of the engine. Raise it for engines that return whole pages.'),
      allow_private: z
        .boolean()
        .default(false)
        .describe('The engine may be in a private network or on this machine. Set it for a server of your own.'),
      api: apiSchema
        .optional()
        .describe("The engine's API; of a known engine, what is different. Set it for an engine that is not known."),
    })
    .superRefine(({ engine, api }, context) => {
      if (api === undefined || api.url !== undefined) return;
      const message = engine === undefined ? 'is missing' : 'is missing: this engine is a server of your own';
      context.addIssue({ code: 'custom', path: ['api', 'url'], message });
    }),
);

export type SearchConfig = z.output<typeof searchSchema>;
export type SearchApi = NonNullable<SearchConfig['api']>;
