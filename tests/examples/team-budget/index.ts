/** A budget for each team and month: held before a call, charged at its end, shown by a command and on a page for clients. */
import { definePlugin, GatewayError, type PluginInstance, z } from 'model-gateway';
import { admission, clientPages, database, formatUsd, usd } from 'model-gateway/domain';
import { type Spending, Spendings } from './store.ts';

export default definePlugin({
  name: 'team-budget',
  config: z.strictObject({
    teams: z
      .record(z.string(), usd())
      .describe('USD that the keys of each project of an account may spend in a calendar month (UTC).'),
  }),
  services: { requires: [database] },
  extends: [admission, clientPages],
  async setup(host, { teams }): Promise<PluginInstance> {
    const store = host.get(database);
    await store.migrate('team-budget', new URL('./migrations/', import.meta.url));
    const spendings = new Spendings(store);
    const monthAt = (at: number) => new Date(at).toISOString().slice(0, 7);
    const limitOf = (team: string) => (Object.hasOwn(teams, team) ? teams[team] : undefined);
    const shown = ({ team, month, spent, held }: Spending) => {
      const limit = limitOf(team);
      return { team, month, spent: formatUsd(spent), held: formatUsd(held), limit: limit && formatUsd(limit) };
    };

    host.extend(admission, {
      name: 'team-budget',
      // Its tables outlive the process: a call that was charged after a kill counts too.
      durable: true,
      async reserve({ id, at, amount, caller: { accountId, project: team } }) {
        const limit = team === undefined ? undefined : limitOf(team);
        if (team === undefined || limit === undefined) return undefined;
        const month = monthAt(at);
        if (!(await spendings.hold(id, { accountId, team, month }, amount, limit))) throw usedUp(team, month, limit);
        return team;
      },
      settle: (_team, { id }, { cost }) => spendings.settle(id, cost),
      release: (_team, { id }) => spendings.settle(id, 0n),
    });

    host.extend(clientPages, {
      name: 'team-budget',
      title: { en: 'Team budgets', de: 'Budgets der Teams' },
      module: new URL('./page.js', import.meta.url),
      routes: [
        {
          method: 'GET',
          path: '',
          summary: 'What the teams of the account have spent this month',
          handle: async ({ accountId }) => ({
            rows: (await spendings.list(monthAt(host.clock.now()), accountId)).map(shown),
          }),
        },
      ],
    });

    return {
      commandLine: {
        commands: [
          {
            name: 'team-budget',
            summary: 'what teams have spent in a month',
            arguments: ['[month]'],
            async run({ month }) {
              const list = await spendings.list(String(month ?? monthAt(host.clock.now())));
              const rows = list.map((one) => ({ account: one.accountId, ...shown(one) }));
              const lines = rows.map(({ account, team, spent, held, limit = 'no limit' }) =>
                [account, team, spent, `(${held} held)`, 'of', limit].join(' '),
              );
              return { json: { rows }, text: lines.join('\n') };
            },
          },
        ],
      },
    };
  },
});

function usedUp(team: string, month: string, limit: bigint): GatewayError {
  const message = `The team "${team}" has used up its budget of ${formatUsd(limit)} USD for ${month}.`;
  return new GatewayError('insufficient_balance', message, { code: 'team_budget_reached', shouldRetry: false });
}
