/** What an operator writes about vendors: keys, what they speak, where. */
import { duration, listOf, size, z } from '../../core/schema.ts';
import { traitsSchema } from '../../core/traits.ts';
import { baseUrlProblem } from './addresses.ts';

const name = (what: string) =>
  z.string().regex(/^[a-z][a-z0-9._-]{0,62}$/i, `${what} is letters, digits, dots, dashes and underscores`);

const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9a-z-]{1,100}$/i, 'must be a header name');
const headerValue = z.string().regex(/^[\t\x20-\x7e]{1,2000}$/, 'must be printable ASCII on one line');

const authSchema = z.strictObject({
  header: headerName.describe('Name of the header that carries the key.'),
  value: headerValue
    .refine((value) => value.includes('{key}'), 'must contain {key}')
    .describe('Its value; {key} is replaced by the key.'),
});

const baseUrl = z.string().transform((value, context) => {
  const problem = baseUrlProblem(value);
  if (problem === undefined) return value.replace(/\/+$/, '');
  context.addIssue({ code: 'custom', message: problem });
  return z.NEVER;
});

const timeoutsSchema = z.strictObject({
  connect: duration()
    .refine((milliseconds) => milliseconds > 0 && milliseconds <= 10_000, 'must be more than 0 and at most 10s')
    .prefault('10s')
    .describe('Longest time for name look-up, connection and TLS together.'),
  first_byte: duration()
    .refine((milliseconds) => milliseconds > 0, 'must be more than 0')
    .prefault('600s')
    .describe("Longest wait from the request's last byte to the answer's head."),
  idle: duration()
    .refine((milliseconds) => milliseconds > 0, 'must be more than 0')
    .prefault('300s')
    .describe('Longest silence inside an answer.'),
});

const drainSchema = z.strictObject({
  longest: duration()
    .refine((milliseconds) => milliseconds > 0 && milliseconds <= 600_000, 'must be more than 0 and at most 10m')
    .prefault('60s')
    .describe('Longest time that an answer is read on; then the vendor is told to stop.'),
  bytes: size()
    .refine((bytes) => bytes > 0, 'must be more than 0')
    .prefault('8MB')
    .describe('Bytes of an answer that are read on at most; then the vendor is told to stop.'),
});

const queueSchema = z.strictObject({
  length: z
    .int()
    .min(0)
    .max(10_000)
    .default(100)
    .describe('Requests that wait at most; more go to the next target at once. 0: nobody waits.'),
  wait: duration()
    .refine((milliseconds) => milliseconds > 0 && milliseconds <= 300_000, 'must be more than 0 and at most 5m')
    .prefault('10s')
    .describe('How long a request waits at most; then it goes to the next target.'),
});

export const providerSchema = z.strictObject({
  keys: listOf(z.string().max(4_000))
    .refine((keys) => keys.every((key) => /^[\x21-\x7e]+$/.test(key)), 'a key is printable ASCII without spaces')
    .refine((keys) => keys.length <= 1_000, 'at most 1000 keys')
    .prefault([])
    .describe('One key or a list; used in turn. Empty entries are dropped; without any key the provider is left out.'),
  speaks: z
    .record(name('a protocol name'), baseUrl)
    .refine((speaks) => Object.keys(speaks).length > 0, 'name at least one protocol')
    .describe(
      'Protocol to base URL, as a client of that vendor would be configured with; NAME:/path is a vendor inside this process.',
    ),
  auth: z
    .union([authSchema, z.record(name('a protocol name'), authSchema)])
    .optional()
    .describe("How the key travels, for all protocols or by protocol. Default: the protocol's own way."),
  headers: z
    .record(headerName, headerValue)
    .prefault({})
    .describe('Headers that are sent with every request to this vendor.'),
  drop_fields: z
    .record(name('a protocol name'), z.array(z.string().min(1)))
    .prefault({})
    .describe('Top-level request members that this vendor does not take, by protocol; they are removed.'),
  dialect: z
    .record(name('a protocol name'), traitsSchema)
    .prefault({})
    .describe('How this vendor wants to be asked in each protocol when a request is translated for it.'),
  stream_usage: z.boolean().default(true).describe('Ask for usage in chat streams by stream_options.include_usage.'),
  concurrency: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('Requests under way at this vendor at most, in each process of the gateway. Default: no bound.'),
  queue: queueSchema.prefault({}).describe('Who waits when as many requests are under way as may be.'),
  timeouts: timeoutsSchema.prefault({}).describe('How long to wait for this vendor.'),
  client_left: z
    .enum(['abort', 'drain'])
    .default('abort')
    .describe(
      'What becomes of an answer whose client has left. abort: the vendor is told to stop and what was seen is charged; ' +
        'drain: it is read to its end, so that its true usage is charged.',
    ),
  drain: drainSchema.prefault({}).describe('How far answers are read on with client_left: drain.'),
});

export const providersSchema = z
  .record(name('a provider name'), providerSchema)
  .describe('Vendors by name: their keys, the protocols they speak and where.');

export type ProviderConfig = z.output<typeof providerSchema>;
export type ProvidersConfig = z.output<typeof providersSchema>;
