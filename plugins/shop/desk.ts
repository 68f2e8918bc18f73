/** The shop desk: what is on offer, and codes by pages and batches. */
import type { ShopDesk } from '../../core/desk.ts';
import { cursorIn, pageOf, rowsFor, uuidForm } from '../../core/paging.ts';
import type { CodeLists } from './code-lists.ts';
import { type CodeMakers, endCodes, makeCodes } from './codes.ts';

export function openShopDesk(makers: CodeMakers, lists: CodeLists): ShopDesk {
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
    batches: () => lists.batches(),
    createCodes: (wanted) => makeCodes(makers, wanted),
    revokeCodes: (named) => endCodes(makers, named),
  };
}
