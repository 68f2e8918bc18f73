/** A plugin as an author would write it: credentials that are fetched, renewed, and computed over the final request. */
import { createHash } from 'node:crypto';
import { definePlugin } from '../../../../core/contract/contract.ts';
import { z } from '../../../../core/contract/schema.ts';
import { type ComputedScheme, Refreshed, vendorCredentials } from '../../../../plugins/common/wire/credentials.ts';

const settings = z.strictObject({
  issuer: z.url().describe('Where tickets are given out.'),
});

const ticket: ComputedScheme<z.output<typeof settings>> = {
  name: 'ticket',
  config: settings,
  needsNoKey: true,
  open({ issuer }, key, { clock }) {
    const tickets = new Refreshed<string>({
      clock,
      async load(signal) {
        const answer = await fetch(issuer, { headers: { authorization: key.reveal() }, signal });
        const body = (await answer.json()) as { ticket?: string; livesMs?: number; error?: string };
        if (body.ticket === undefined) throw new Error(body.error ?? `the issuer answered ${answer.status}`);
        return { value: body.ticket, endsAt: clock.now() + (body.livesMs ?? 3_600_000) };
      },
    });
    return {
      async authorize({ method, url, body }) {
        const digest = createHash('sha256');
        for (const part of Array.isArray(body) ? body : [body ?? '']) digest.update(part as Uint8Array);
        const signed = `${method} ${url} ${digest.digest('hex')}`;
        return { 'x-ticket': await tickets.get(), 'x-signed': signed };
      },
      refused: ({ headers }) => tickets.refuse(headers['x-ticket'] ?? ''),
    };
  },
};

export default definePlugin({
  name: 'ticket',
  config: z.strictObject({}),
  extends: [vendorCredentials],
  setup(host) {
    host.extend(vendorCredentials, ticket);
    return {};
  },
});
