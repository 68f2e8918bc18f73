/** The tool by which a key makes another one that may do no more than itself, for less money and a shorter time. */
import type { Exchange, Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { z } from '../../../core/contract/schema.ts';
import { caller } from '../../common/domain/accounts.ts';
import { accountAdmin, type KeyView } from '../../common/domain/admin/accounts.ts';
import { formatUsd, parseUsd } from '../../common/domain/money.ts';
import { Failed, type OwnTool } from './tools.ts';

const dayMs = 86_400_000;
const usualDays = 30;
const mostDays = 365;

const terms = z.strictObject({
  name: z.string().trim().min(1).max(100),
  cap: z.string().regex(/^\d{1,9}(?:\.\d{1,9})?$/, 'must be an amount of USD such as "2.50"'),
  every: z.enum(['day', 'week', 'month', 'ever']).default('ever'),
  models: z.array(z.string().min(1).max(200)).min(1).max(100).optional(),
  days: z.int().min(1).max(mostDays).default(usualDays),
});

export const createKey: OwnTool = {
  name: 'create_key',
  description: 'Makes a key that may do what this key may, with a cap of its own. It is shown only in this answer.',
  changes: true,
  properties: {
    name: { type: 'string', description: 'What it is for.', maxLength: 100 },
    cap: { type: 'string', description: 'The most that it may spend, in USD, such as "2.50".' },
    every: {
      type: 'string',
      enum: ['day', 'week', 'month', 'ever'],
      description: 'The calendar period (UTC) of the cap; absent: for ever.',
    },
    models: {
      type: 'array',
      items: { type: 'string' },
      description: 'The models and tools that it may call; absent: those of this key.',
    },
    days: {
      type: 'integer',
      minimum: 1,
      maximum: mostDays,
      description: `How long it is valid; absent: ${usualDays} days. It ends no later than this key.`,
    },
  },
  required: ['name', 'cap'],
  async run(given, exchange, host) {
    const read = terms.safeParse(given);
    if (!read.success) {
      const [issue] = read.error.issues;
      throw new Failed(`${issue?.path.join('.') || 'arguments'}: ${issue?.message}`);
    }
    try {
      return await made(read.data, exchange, host);
    } catch (error) {
      if (error instanceof GatewayError && error.kind !== 'internal') throw new Failed(error.message);
      throw error;
    }
  },
};

async function made(
  { name, cap, every, models, days }: z.output<typeof terms>,
  exchange: Exchange,
  host: Host,
): Promise<object> {
  const admin = host.find(accountAdmin);
  if (admin === undefined) throw new Failed('This gateway makes no keys.');
  const { accountId, keyId } = exchange.get(caller);
  const own = await admin.key(accountId, keyId);
  const amount = parseUsd(cap);
  if (amount <= 0n) throw new Failed('cap: must be more than 0');
  const latest = host.clock.now() + days * dayMs;
  const expiresAt = Math.min(latest, own.expiresAt ?? latest);
  const chosen = modelsOf(own, models);
  const { project, addresses, limits, images, tags, regions, person } = own;
  // Several caps together would be more than that of this key.
  if (own.cap !== undefined) throw new Failed('A key that has a cap makes no keys.');
  const inherited = { project, addresses, limits, images, tags, regions };
  const key = await admin.createKey(
    accountId,
    { ...inherited, name, models: chosen, expiresAt, cap: { amount, every } },
    person,
  );
  exchange.log.info({ key_id: key.id }, 'a key was made by another key');
  return {
    ...{ key: key.key, id: key.id, name, cap: formatUsd(amount), every, currency: 'USD' },
    ...{ expires_at: new Date(expiresAt).toISOString(), ...(chosen === undefined ? {} : { models: chosen }) },
  };
}

function modelsOf(own: KeyView, wanted: readonly string[] | undefined): readonly string[] | undefined {
  const missing = own.models === undefined ? undefined : wanted?.find((one) => !own.models!.includes(one));
  if (missing !== undefined) throw new Failed(`models: this key may not call "${missing}"`);
  return wanted ?? own.models;
}
