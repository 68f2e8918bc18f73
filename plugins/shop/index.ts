/** The shop: plans bought from the balance, and codes that give money, a plan, or days of a plan. */

import { definePlugin, type Host, type PluginInstance } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { accounts } from '../common/domain/accounts.ts';
import { type ShopAdmin, shopAdmin } from '../common/domain/admin/shop.ts';
import { type Database, database } from '../common/domain/database.ts';
import { pool } from '../common/domain/ledger.ts';
import { plans, type Shop, shop } from '../common/domain/plans.ts';
import { cursorIn, pageOf, rowsFor, uuidForm } from '../common/kit/paging.ts';
import { codeCommands } from './code-commands.ts';
import { type CodeLists, openCodeLists } from './code-lists.ts';
import { type CodeMakers, endCodes, makeCodes } from './codes.ts';
import { planCommands } from './plan-commands.ts';
import { redeemCode } from './redeem.ts';
import { buyPlan, renewPlan, type Sales } from './sale.ts';
import { type CodeStore, openCodeStore } from './store.ts';

export default definePlugin({
  name: 'shop',
  config: z.strictObject({}),
  services: { requires: [database, accounts, plans, pool], provides: [shop, shopAdmin] },
  setup: (host) => setUpShop(host, openCodeStore),
});

/** The plugin's setup with the codes kept where the caller chooses. */
export async function setUpShop(host: Host, codesIn: (store: Database) => CodeStore): Promise<PluginInstance> {
  const store = host.get(database);
  await store.migrate('shop', new URL('./migrations/', import.meta.url));
  const codes = codesIn(store);
  const lists = openCodeLists(store);
  const sales: Sales = { plans: host.get(plans), pool: host.get(pool), accounts: host.get(accounts) };
  sales.pool.onTermEnded((posting, term) => renewPlan(sales, posting, term));
  const counter: Shop = {
    buy: (accountId, plan, reference) => buyPlan(sales, accountId, plan, reference),
    redeem: (accountId, code) => redeemCode(sales, codes, accountId, code),
  };
  host.provide(shop, counter);
  host.provide(shopAdmin, openShopAdmin({ codes, plans: sales.plans, clock: host.clock, random: host.random }, lists));
  return {
    commandLine: {
      commands: [
        ...planCommands({ host, shop: counter, ...sales }),
        ...codeCommands({ host, shop: counter, codes, lists, ...sales }),
      ],
    },
  };
}

function openShopAdmin(makers: CodeMakers, lists: CodeLists): ShopAdmin {
  const { plans } = makers;
  return {
    offers: () =>
      plans
        .list()
        .flatMap(({ name }) => plans.offer(name) ?? [])
        .filter(({ price }) => price > 0n),
    codes: async ({ batch }, page) => {
      const limit = rowsFor(page);
      const rows = await lists.page(batch, limit, cursorIn(page, uuidForm));
      return pageOf(
        rows,
        page,
        ({ id }) => id,
        (code) => code,
      );
    },
    redemptions: async (codeId, page) => {
      const limit = rowsFor(page);
      const before = cursorIn(page, /^\d{1,9}$/);
      const rows = uuidForm.test(codeId) ? await lists.redemptions(codeId, limit, before) : [];
      return pageOf(
        rows,
        page,
        ({ number }) => String(number),
        ({ accountId, at }) => ({ accountId, at }),
      );
    },
    batches: () => lists.batches(),
    createCodes: (wanted) => makeCodes(makers, wanted),
    revokeCodes: (named) => endCodes(makers, named),
  };
}
