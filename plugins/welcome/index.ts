/** Opens one account with a key and some money on a gateway's first start, and says how to call it. */
import { definePlugin } from '../../core/contract.ts';
import { formatUsd } from '../../core/money.ts';
import { usd, z } from '../../core/schema.ts';
import { accounts, ledger, plans } from '../../core/vocabulary.ts';

export default definePlugin({
  name: 'welcome',
  config: z.strictObject({
    account: z.string().default('demo').describe('Name of the account that is opened when the gateway has none.'),
    credit: usd().prefault('10').describe('USD that the account starts with.'),
    model: z.string().default('gpt-5.4-mini').describe('Model that the printed first calls name.'),
  }),
  needs: [accounts],
  uses: [ledger, plans],
  setup(host, config) {
    const people = host.need(accounts);
    return {
      async listening(origin) {
        if ((await people.list()).length > 0) return;
        const account = await people.create(config.account, host.find(plans)?.default ?? 'default');
        await host.find(ledger)?.credit(account.id, config.credit, {
          kind: 'promotion',
          reason: 'welcome',
          reference: `welcome:${account.id}`,
        });
        const { key } = await people.createKey(account.id, { name: 'first key' });
        process.stdout.write(greeting(origin, key, formatUsd(config.credit), config.model));
      },
    };
  },
});

function greeting(origin: string, key: string, credit: string, model: string): string {
  return `
  An account was opened, with ${credit} USD and this key. It is shown only now:

      ${key}

  First calls:

      export GATEWAY_KEY=${key}

      curl ${origin}/v1/chat/completions -H "Authorization: Bearer $GATEWAY_KEY" -H 'content-type: application/json' \\
        -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'

      curl ${origin}/v1/messages -H "x-api-key: $GATEWAY_KEY" -H 'content-type: application/json' \\
        -d '{"model":"${model}","max_tokens":200,"messages":[{"role":"user","content":"Hello"}]}'

      curl ${origin}/v1beta/models/${model}:generateContent -H "x-goog-api-key: $GATEWAY_KEY" -H 'content-type: application/json' \\
        -d '{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}'

`;
}
