/** Settings of vendors: keys, protocols, base URLs and limits. */
import { duration, secretText, size, z } from '../../core/contract/schema.ts';
import { isObject, tryParse } from '../../core/json/json.ts';
import { familySchema, proxySchema, tlsSchema } from '../../core/tools/network-config.ts';
import { headersSchema } from '../common/domain/headers-schema.ts';
import { mostRegions, regionName } from '../common/domain/organizations/placement.ts';
import { traitsSchema } from '../common/domain/traits.ts';
import { baseUrlProblem } from './addresses.ts';
import { headerSchema, type WrittenAuth } from './credentials.ts';
import { ownAddresses, presets, presetsForForms, unknownPreset, withPreset } from './presets.ts';
import { nameProblem, referenceIn } from './secrets/reference-text.ts';

const name = (what: string) =>
  z.string().regex(/^[a-z][a-z0-9._-]{0,62}$/i, `${what} is letters, digits, dots, dashes and underscores`);

/** The members beside `scheme` are checked by the scheme itself, when every plugin is set up. */
const authForms = [
  headerSchema.transform((form): WrittenAuth => ({ scheme: 'header', ...form })),
  z
    .looseObject({
      scheme: z
        .string()
        .describe(
          "How requests are authorized: header, query, or a scheme of a plugin. Use a plugin's scheme for a cloud.",
        ),
    })
    .transform((written): WrittenAuth => written),
] as const;

const baseUrl = z.string().transform((value, context) => {
  const problem = baseUrlProblem(value);
  if (problem === undefined) return value.replace(/\/+(?=$|\?)/, '');
  context.addIssue({ code: 'custom', message: problem });
  return z.NEVER;
});

const timeoutsSchema = z.strictObject({
  connect: duration()
    .refine((milliseconds) => milliseconds > 0 && milliseconds <= 10_000, 'must be more than 0 and at most 10s')
    .prefault('10s')
    .describe('Longest time for name look-up, connection and TLS together. Lower it to try the next target sooner.'),
  first_byte: duration()
    .refine((milliseconds) => milliseconds > 0, 'must be more than 0')
    .prefault('600s')
    .describe(
      "Longest wait from the request's last byte to the answer's head. Lower it for vendors that hang; raise it for models that think for long.",
    ),
  idle: duration()
    .refine((milliseconds) => milliseconds > 0, 'must be more than 0')
    .prefault('300s')
    .describe('Longest silence inside an answer. Raise it for streams that pause.'),
});

const drainSchema = z.strictObject({
  longest: duration()
    .refine((milliseconds) => milliseconds > 0 && milliseconds <= 600_000, 'must be more than 0 and at most 10m')
    .prefault('60s')
    .describe(
      'Longest time to keep reading an answer after its client left; then the request is aborted. Raise it for slow models whose usage comes at the end.',
    ),
  bytes: size()
    .refine((bytes) => bytes > 0, 'must be more than 0')
    .prefault('8MB')
    .describe(
      'Most bytes of an answer to keep reading after its client left; then the request is aborted. Raise it for long answers.',
    ),
});

const queueSchema = z.strictObject({
  length: z
    .int()
    .min(0)
    .max(10_000)
    .default(100)
    .describe(
      'Limit of waiting requests; more go to the next target at once; 0: no queue. Raise it where waiting is better than another target.',
    ),
  wait: duration()
    .refine((milliseconds) => milliseconds > 0 && milliseconds <= 300_000, 'must be more than 0 and at most 5m')
    .prefault('10s')
    .describe(
      'Longest wait of a request; then it goes to the next target. Raise it for a local server that is the only target.',
    ),
});

/** A credential file, as JSON over any lines, becomes one line; `auth` needs a scheme that reads it. */
export const keyText = secretText({ takesReference: true })
  .max(16_000)
  .transform((key) => (key.trimStart().startsWith('{') ? oneLine(key) : key))
  .refine(
    (key) => /^(?:[\x21-\x7e]{0,4000}|\{[\x20-\x7e]*\})$/.test(key),
    'a key is printable ASCII without spaces, and without "Bearer" before it',
  )
  .superRefine((key, context) => {
    const name = referenceIn(key);
    const problem = name === undefined ? undefined : nameProblem(name);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: `the name behind "secret:" ${problem}` });
  });

function oneLine(json: string): string {
  const parsed = tryParse(json);
  return isObject(parsed) ? JSON.stringify(parsed) : json;
}

const keySchema = z.union([
  keyText.transform((key) => ({ key, proxy: undefined })),
  z.strictObject({
    key: keyText.describe('The key. Write it as `${VARIABLE}`, `${file:/path}` or `secret:NAME`, not as plain text.'),
    proxy: proxySchema
      .optional()
      .describe(
        "Proxy for requests with this key. Set it where keys must come from different addresses. Default: the provider's.",
      ),
  }),
]);

const entrySchema = z.strictObject({
  preset: z
    .string()
    .superRefine((name, context) => {
      if (!presets().has(name)) context.addIssue({ code: 'custom', message: unknownPreset(name) });
    })
    .optional()
    .meta({
      description:
        'Name of a vendor in config/vendors.yaml, whose settings this entry has except for those that it writes itself. Use it for vendors that the gateway knows; providers presets lists them.',
      // For forms; read with the schema, not with the module.
      get 'x-presets'() {
        return presetsForForms();
      },
    }),
  keys: z
    .union([keySchema, z.array(keySchema)])
    .transform((written) => [written].flat().filter(({ key }) => key !== ''))
    .refine((keys) => keys.length <= 1_000, 'at most 1000 keys')
    .optional()
    .describe(
      'One key or a list, each as text, as secret:NAME for a stored secret, or as { key, proxy }, used in turn; empty entries are dropped, and without any key the provider is left out. Set it for every vendor, except for a scheme of auth that finds its secret elsewhere.',
    ),
  optional: z
    .boolean()
    .default(false)
    .describe(
      'Left out without a notice where it has no key. Turn it on for a vendor that is only used when another one fails.',
    ),
  speaks: z
    .record(name('a protocol name'), baseUrl)
    .refine((speaks) => Object.keys(speaks).length > 0, 'name at least one protocol')
    .optional()
    .describe(
      'Protocol to base URL, as a client of that vendor would be configured with; {model} in it is replaced by the name of the model at the vendor; NAME:/path is a vendor inside this process. Needed without a preset.',
    ),
  models_url: z
    .union([z.literal('none'), z.url({ protocol: /^https?$/, error: 'must be an http(s) URL, or none' })])
    .optional()
    .describe(
      "Address of the vendor's list of models, for `providers import-models`; none: it has no list. Set it where the list is elsewhere. Default: /models below the base URL.",
    ),
  auth: z
    .union([...authForms, z.record(name('a protocol name'), z.union(authForms))])
    .optional()
    .describe(
      "How requests are authorized, for all protocols or by protocol: { header, value }, or { scheme } with the scheme's settings. Set it for vendors and clouds with their own way. Default: the protocol's own header.",
    ),
  headers: headersSchema
    .prefault({})
    .describe('Headers that are sent with every request to this vendor. Set those that the vendor asks for.'),
  drop_fields: z
    .record(name('a protocol name'), z.array(z.string().min(1)))
    .prefault({})
    .describe(
      'Top-level request members that this vendor does not take, by protocol; they are removed. Set it when the vendor refuses a member that clients send.',
    ),
  dialect: z
    .record(name('a protocol name'), traitsSchema)
    .prefault({})
    .describe(
      'Traits of this vendor in each protocol, for requests that are translated for it. Set it when the vendor refuses translated requests.',
    ),
  proxy: proxySchema
    .optional()
    .describe(
      'Proxy to this vendor: http://, https:// or socks5://, with user and password where it needs them. Set it where the vendor cannot be reached directly. Empty: none.',
    ),
  tls: tlsSchema
    .optional()
    .describe(
      'Certificates for connections to this vendor. Set it when it uses a private authority or asks for a certificate.',
    ),
  addresses: familySchema,
  stream_usage: z
    .boolean()
    .default(true)
    .describe(
      'Ask for usage in chat streams by stream_options.include_usage. Turn it off for vendors that refuse the option.',
    ),
  session_key: z
    .boolean()
    .default(false)
    .describe(
      "Send a digest of the session as prompt_cache_key in chat and responses, where the client sends none; it names neither account nor session. Turn it on for vendors that keep a session's prompts together by it.",
    ),
  cache_marks: z
    .enum(['auto', 'client', 'off'])
    .optional()
    .describe(
      "Marks for the prompt cache in requests of the messages protocol. auto: added where the client has set none, at the end of tools, instructions and the last two user turns; client: the client's own alone; off: none. Use auto for clients that set none, off where the vendor refuses them. Default: relayed requests keep their own, translated ones are as auto, or as the trait cache_marks says.",
    ),
  concurrency: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe(
      'Requests under way at this vendor at most, in each process of the gateway. Set it for local servers and vendors with such a limit. Default: no bound.',
    ),
  queue: queueSchema.prefault({}).describe('Queue of requests beyond the concurrency limit.'),
  timeouts: timeoutsSchema.prefault({}).describe('How long to wait for this vendor.'),
  client_left: z
    .enum(['auto', 'abort', 'drain'])
    .default('auto')
    .describe(
      'What happens to an answer after its client disconnects. abort: the request is aborted and the usage so far is charged; drain: it is read to its end, so that its true usage is charged; auto: drain where the whole answer can cost at most a tenth of the prompt and usage comes with its end (chat and responses), else abort. Use drain when the vendor charges whole answers anyway.',
    ),
  unknown_ids: z
    .enum(['refuse', 'forward'])
    .default('refuse')
    .describe(
      "Ids of files, containers, conversations and the like that this vendor has not issued to the calling account through this gateway. refuse: such a request is an error; forward: they are sent. Use forward only for a vendor's account that belongs to one customer alone.",
    ),
  zdr: z
    .boolean()
    .default(false)
    .describe(
      'It keeps nothing of what it is sent, by your contract with it (zero data retention): it serves accounts of which nothing is kept. Turn it on where the contract says so for every model and key here.',
    ),
  regions: z
    .array(z.string().regex(regionName, 'a region is small letters, digits and dashes, such as eu'))
    .min(1)
    .max(mostRegions)
    .optional()
    .describe(
      'Regions in which it processes what it is sent, by names of your own such as eu; with several, each call may be in any of them. Set it where plans, projects or keys are bound to regions. Default: not known, so it serves none that is bound.',
    ),
  shared_ids: z
    .array(z.string().min(1).max(1_000))
    .max(10_000)
    .prefault([])
    .describe(
      'Ids at this vendor that every account may use, such as a vector store or a prompt of the operator. List what you offer to all.',
    ),
  drain: drainSchema.prefault({}).describe('Limits of reading an answer to its end.'),
});

/** An entry is laid over its preset before it is validated, so that both are checked by the same rules. */
const providerSchema = z
  .preprocess(withPreset, entrySchema)
  .superRefine(({ preset, speaks }, context) => {
    if (speaks === undefined && (preset === undefined || presets().has(preset)))
      context.addIssue({
        code: 'custom',
        path: ['speaks'],
        message: `is missing: ${ownAddresses(preset) ?? 'name a preset, or protocols and base URLs'}`,
      });
  })
  .transform((entry) => ({
    ...entry,
    speaks: entry.speaks ?? {},
    ...keysOf(entry),
  }));

function keysOf({ keys, auth }: Pick<z.output<typeof entrySchema>, 'keys' | 'auth'>) {
  const written = keys ?? (authsOf(auth).length === 0 ? [] : [{ key: '', proxy: undefined }]);
  return {
    keys: written.map(({ key }) => key),
    /** By the place of the key; undefined: the provider's. */
    keyProxies: written.map(({ proxy }) => proxy),
    /** No key is written: the scheme of `auth` must need none. */
    isKeyless: keys === undefined,
  };
}

type AuthSetting = z.output<typeof entrySchema>['auth'];

/** The `auth` of all protocols, or of each, with its place below `auth`. */
export function authsOf(auth: AuthSetting): (readonly [path: readonly string[], auth: WrittenAuth])[] {
  if (auth === undefined) return [];
  if (isOneAuth(auth)) return [[[], auth]];
  return Object.entries(auth).map(([protocol, own]) => [[protocol], own]);
}

/** Whether the setting is one for all protocols, in contrast to one for each. */
export function isOneAuth(auth: NonNullable<AuthSetting>): auth is WrittenAuth {
  return typeof auth['scheme'] === 'string';
}

export const providersSchema = z
  .record(name('a provider name'), providerSchema)
  .describe('Vendors by name: their keys, the protocols they speak and where.');

export type ProviderConfig = z.output<typeof providerSchema>;
export type ProvidersConfig = z.output<typeof providersSchema>;
