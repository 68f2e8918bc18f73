/** On the first start, creates an account with a key and credit, and shows how to call the gateway. */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { accounts } from '../common/domain/accounts.ts';
import { ledger } from '../common/domain/ledger.ts';
import { formatUsd } from '../common/domain/money.ts';
import { usd } from '../common/domain/money-schema.ts';
import { plans } from '../common/domain/plans.ts';

export default definePlugin({
  name: 'welcome',
  config: z.strictObject({
    account: z
      .string()
      .default('demo')
      .describe("Name of the account that is opened when the gateway has none. Change it to the first client's name."),
    credit: usd().prefault('10').describe('USD that the account starts with. Change it to what trying may cost.'),
    variable: z
      .string()
      .regex(/^[A-Z][A-Z0-9_]*$/, 'must be the name of an environment variable')
      .default('GATEWAY_KEY')
      .describe(
        'Environment variable that the printed first calls read the key from. Change it where your programs use another one.',
      ),
    model: z
      .string()
      .default('gpt-5.4-mini')
      .describe('Model that the printed first calls name. Change it to one that you sell.'),
  }),
  services: { requires: [accounts], optional: [ledger, plans] },
  setup(host, config) {
    const accountService = host.get(accounts);
    return {
      lifecycle: {
        async listening(origin) {
          if (!host.processGroup.isFirst || (await accountService.list()).length > 0) return;
          const account = await accountService.create(config.account, host.find(plans)?.default ?? 'default');
          await host.find(ledger)?.credit(account.id, config.credit, {
            kind: 'promotion',
            reason: 'welcome',
            reference: `welcome:${account.id}`,
          });
          const { key } = await accountService.createKey(account.id, { name: 'first key' });
          const { variable, model } = config;
          const credit = formatUsd(config.credit);
          const shown = { gateway: host.gateway, origin, key, credit, variable, model };
          if (process.stdout.isTTY === true) process.stdout.write(greeting(shown));
          // As a record: elsewhere in the log the key would be masked.
          else
            host.log.record(
              'an account was opened; its key is shown only now',
              JSON.stringify({
                time: new Date(host.clock.now()).toISOString(),
                ...{ account_id: account.id, account: account.name, key, credit_usd: credit },
                ...{ url: origin, first_calls: firstCalls(shown) },
              }),
            );
        },
      },
    };
  },
});

interface Greeting {
  readonly gateway: string;
  readonly origin: string;
  readonly key: string;
  readonly credit: string;
  readonly variable: string;
  readonly model: string;
}

function greeting(shown: Greeting): string {
  const { gateway, origin, key, credit, variable } = shown;
  return `
  The gateway "${gateway}" listens at ${origin}. An account was opened in it, with ${credit} USD and this key.
  It is shown only now:

      ${key}

  First calls:

      export ${variable}=${key}
${firstCalls(shown)
  .map((call) => `\n      ${call.replaceAll('\n', '\n        ')}\n`)
  .join('')}
`;
}

/** By the environment variable with the key. */
function firstCalls({ origin, variable, model }: Greeting): string[] {
  const bearer = `-H "Authorization: Bearer $${variable}" -H 'content-type: application/json' \\\n`;
  const own = `-H "x-api-key: $${variable}" -H 'content-type: application/json' \\\n`;
  return [
    `curl ${origin}/v1/chat/completions ${bearer}-d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`,
    `curl ${origin}/v1/messages ${own}-d '{"model":"${model}","max_tokens":200,"messages":[{"role":"user","content":"Hello"}]}'`,
    `curl ${origin}/v1beta/models/${model}:generateContent ${bearer}-d '{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}'`,
  ];
}
