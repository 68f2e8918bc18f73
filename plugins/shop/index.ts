/** The shop: plans bought from the balance, and codes that give money, a plan, or days of a plan. */
import { definePlugin, type Host, type Part } from '../../core/contract.ts';
import { shopDesk } from '../../core/desk.ts';
import { z } from '../../core/schema.ts';
import { accounts, type Database, database, plans, pool, type Shop, shop } from '../../core/vocabulary.ts';
import { codeCommands } from './code-commands.ts';
import { openCodeLists } from './code-lists.ts';
import { openShopDesk } from './desk.ts';
import { planCommands } from './plan-commands.ts';
import { redeemCode } from './redeem.ts';
import { buyPlan, renewPlan, type Sales } from './sale.ts';
import { type CodeStore, openCodeStore } from './store.ts';

export default definePlugin({
  name: 'shop',
  config: z.strictObject({}),
  needs: [database, accounts, plans, pool],
  provides: [shop, shopDesk],
  setup: (host) => setUpShop(host, openCodeStore),
});

/** The plugin's setup with the codes kept where the caller chooses. */
export async function setUpShop(host: Host, codesIn: (store: Database) => CodeStore): Promise<Part> {
  const store = host.need(database);
  await store.migrate('shop', new URL('./migrations/', import.meta.url));
  const codes = codesIn(store);
  const lists = openCodeLists(store);
  const sales: Sales = { plans: host.need(plans), pool: host.need(pool), accounts: host.need(accounts) };
  sales.pool.onTermEnded((posting, term) => renewPlan(sales, posting, term));
  const counter: Shop = {
    buy: (accountId, plan, reference) => buyPlan(sales, accountId, plan, reference),
    redeem: (accountId, code) => redeemCode(sales, codes, accountId, code),
  };
  host.provide(shop, counter);
  host.provide(shopDesk, openShopDesk({ codes, plans: sales.plans, clock: host.clock, random: host.random }, lists));
  return {
    commands: [
      ...planCommands({ host, shop: counter, ...sales }),
      ...codeCommands({ host, shop: counter, codes, lists, ...sales }),
    ],
  };
}
